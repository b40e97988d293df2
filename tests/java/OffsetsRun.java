import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Asks again and again where partitions end, and reports it. */
final class OffsetsRun extends Run {
    private static final long ASK_EVERY_NS = 20_000_000;

    OffsetsRun(String id, Options options) {
        super(id, options);
    }

    @Override
    void work() {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        List<TopicPartition> partitions = options.partitions();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(options.properties(), bytes, bytes)) {
            Events.write(id, "started");
            while (!stopping) {
                consumer.endOffsets(partitions)
                        .forEach(
                                (where, offset) ->
                                        Events.write(id, "end", "partition", where.partition(),
                                                "offset", offset));
                LockSupport.parkNanos(ASK_EVERY_NS);
            }
        }
    }
}
