import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Writes three records and reads them in a group, with any release of the Java clients. */
final class OneShot {
    private static final int RECORDS = 3;

    private OneShot() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("client.id", arguments[2]);
        for (String kind : new String[] {"key", "value"}) {
            String library = "org.apache.kafka.common.serialization.ByteArray";
            settings.put(kind + ".serializer", library + "Serializer");
            settings.put(kind + ".deserializer", library + "Deserializer");
        }
        settings.put("group.id", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        String topic = arguments[1];
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < RECORDS; number++) {
                byte[] value = String.valueOf(number).getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS);
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(Collections.singletonList(topic));
            int read = 0;
            while (read < RECORDS) {
                read += poll(consumer).count();
            }
            consumer.commitSync();
        }
    }

    /** Older releases poll by milliseconds only, newer ones by a duration only. */
    private static ConsumerRecords<?, ?> poll(KafkaConsumer<?, ?> consumer) throws Exception {
        try {
            Method poll = KafkaConsumer.class.getMethod("poll", Duration.class);
            return (ConsumerRecords<?, ?>) poll.invoke(consumer, Duration.ofMillis(200));
        } catch (NoSuchMethodException older) {
            Method poll = KafkaConsumer.class.getMethod("poll", long.class);
            return (ConsumerRecords<?, ?>) poll.invoke(consumer, 200L);
        }
    }
}
