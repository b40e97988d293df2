import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a topic, as a member of a group if {@code prop.group.id} is given, and reports all. */
final class ConsumerRun extends Run implements ConsumerRebalanceListener {
    private KafkaConsumer<byte[], byte[]> consumer;

    ConsumerRun(String id, Options options) {
        super(id, options);
    }

    @Override
    void work() {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        consumer = new KafkaConsumer<>(options.properties(), bytes, bytes);
        try {
            if (options.properties().containsKey("group.id")) {
                consumer.subscribe(List.of(options.text("topic")), this);
            } else {
                assign();
            }
            while (!stopping) {
                consumer.poll(Duration.ofMillis(100)).forEach(this::report);
            }
        } finally {
            consumer.close();
        }
    }

    private void assign() {
        List<TopicPartition> partitions = options.partitions();
        consumer.assign(partitions);
        if (options.text("from").equals("end")) {
            consumer.seekToEnd(partitions);
        } else {
            consumer.seekToBeginning(partitions);
        }
        partitions.forEach(consumer::position);
        Events.write(id, "started");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        if (!partitions.isEmpty()) {
            Events.write(id, "started");
        }
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

    private void report(ConsumerRecord<byte[], byte[]> record) {
        String[] fields = new String(record.value(), StandardCharsets.UTF_8).split("\\|");
        double now = Events.now();
        Events.write(id, "consumed", "partition", record.partition(), "offset", record.offset(),
                "producer", fields[0], "seq", Long.parseLong(fields[2]), "at", now,
                "latency_ms", (now - Double.parseDouble(fields[3])) * 1e3);
    }
}
