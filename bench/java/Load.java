import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Does a fixed amount of work through one address and says in one line of JSON what it took.
 *
 * <p>Arguments: {@code produce|consume|single} BOOTSTRAP TOPIC AMOUNT SIZE CONNECTIONS PARTITIONS.
 *
 * <ul>
 *   <li>produce: AMOUNT bytes in records of 1000 bytes, batches of SIZE bytes;
 *   <li>consume: AMOUNT bytes from the start of the partitions, at most SIZE bytes of each in a
 *       response;
 *   <li>single: AMOUNT records of SIZE bytes, each acknowledged before the next is sent.
 * </ul>
 *
 * The system property client.rack is the consumers'. CONNECTIONS clients share the work, each with connections and PARTITIONS partitions of its own.
 */
final class Load {
    private static final int RECORD = 1000;

    private Load() {}

    public static void main(String[] args) throws Exception {
        String kind = args[0];
        String bootstrap = args[1];
        String topic = args[2];
        long amount = Long.parseLong(args[3]);
        int size = Integer.parseInt(args[4]);
        int connections = Integer.parseInt(args[5]);
        List<Worker> workers = new ArrayList<>();
        int partitions = Integer.parseInt(args[6]);
        for (int client = 0; client < connections; client++) {
            int first = client * partitions;
            List<TopicPartition> own =
                    IntStream.range(first, first + partitions)
                            .mapToObj(partition -> new TopicPartition(topic, partition))
                            .toList();
            workers.add(new Worker(kind, bootstrap, own, amount / connections, size));
        }
        long began = System.nanoTime();
        workers.forEach(Thread::start);
        List<long[]> latencies = new ArrayList<>();
        for (Worker worker : workers) {
            worker.join();
            if (worker.failure != null) {
                throw new IllegalStateException("client failed", worker.failure);
            }
            latencies.add(worker.latencies);
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        long[] all = latencies.stream().flatMapToLong(Arrays::stream).sorted().toArray();
        var system =
                (com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean();
        System.out.printf(
                "{\"seconds\": %.3f, \"cpu_seconds\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f}%n",
                seconds, system.getProcessCpuTime() / 1e9, quantile(all, 0.5), quantile(all, 0.99));
    }

    private static double quantile(long[] sorted, double share) {
        if (sorted.length == 0) {
            return 0;
        }
        return sorted[Math.min(sorted.length - 1, (int) (share * sorted.length))] / 1e3;
    }

    /** One client. {@code latencies}: nanoseconds of each request that was waited for. */
    private static final class Worker extends Thread {
        private final String kind;
        private final String bootstrap;
        private final List<TopicPartition> partitions;
        private final long amount;
        private final int size;
        private long[] latencies = {};
        private Exception failure;

        Worker(
                String kind,
                String bootstrap,
                List<TopicPartition> partitions,
                long amount,
                int size) {
            this.kind = kind;
            this.bootstrap = bootstrap;
            this.partitions = partitions;
            this.amount = amount;
            this.size = size;
        }

        @Override
        public void run() {
            try {
                switch (kind) {
                    case "produce" -> produce();
                    case "consume" -> consume();
                    case "single" -> single();
                    default -> throw new IllegalArgumentException(kind);
                }
            } catch (Exception error) {
                failure = error;
            }
        }

        private Properties properties() {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", bootstrap);
            return properties;
        }

        private KafkaProducer<byte[], byte[]> producer(int batch, int linger) {
            Properties properties = properties();
            properties.put("acks", "1");
            properties.put("enable.idempotence", "false");
            properties.put("batch.size", batch);
            properties.put("linger.ms", linger);
            properties.put("max.request.size", 4 << 20);
            ByteArraySerializer bytes = new ByteArraySerializer();
            return new KafkaProducer<>(properties, bytes, bytes);
        }

        /** A record of which each partition in turn gets {@code batch} bytes. */
        private ProducerRecord<byte[], byte[]> record(byte[] value, long at, int batch) {
            int turn = (int) (at / batch % partitions.size());
            TopicPartition partition = partitions.get(turn);
            return new ProducerRecord<>(partition.topic(), partition.partition(), null, value);
        }

        private void produce() throws Exception {
            byte[] value = new byte[RECORD];
            try (var producer = producer(size, 50)) {
                var last = producer.send(record(value, 0, size));
                for (long sent = RECORD; sent < amount; sent += RECORD) {
                    last = producer.send(record(value, sent, size));
                }
                producer.flush();
                last.get();
            }
        }

        private void single() throws Exception {
            byte[] value = new byte[size];
            long[] took = new long[(int) amount];
            try (var producer = producer(16384, 0)) {
                for (int i = 0; i < took.length; i++) {
                    long began = System.nanoTime();
                    producer.send(record(value, i, 1)).get();
                    took[i] = System.nanoTime() - began;
                }
            }
            latencies = took;
        }

        private void consume() {
            Properties properties = properties();
            properties.put("max.partition.fetch.bytes", size);
            properties.put("max.poll.records", 100_000);
            properties.put("client.rack", System.getProperty("client.rack", ""));
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (var consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                long read = 0;
                while (read < amount) {
                    for (var record : consumer.poll(Duration.ofSeconds(10))) {
                        read += record.value().length;
                    }
                }
            }
        }
    }
}
