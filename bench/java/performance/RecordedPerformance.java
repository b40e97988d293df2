package org.apache.kafka.tools;

import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Kafka's own ProducerPerformance, of which each record's latency is written down too.
 *
 * <p>Arguments: a file, and then those of kafka-producer-perf-test. The file gets a line for each
 * record: milliseconds since 1970 when it was given to the producer, milliseconds until it was
 * acknowledged (empty: it was given up), and its partition (-1: not known).
 */
public final class RecordedPerformance extends ProducerPerformance {
    private final PrintWriter out;

    private RecordedPerformance(PrintWriter out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(args[0])))) {
            new RecordedPerformance(out).start(Arrays.copyOfRange(args, 1, args.length));
        }
    }

    @Override
    KafkaProducer<byte[], byte[]> createKafkaProducer(Properties properties) {
        return new Recorded(properties, out);
    }

    private static final class Recorded extends KafkaProducer<byte[], byte[]> {
        private final PrintWriter out;

        Recorded(Properties properties, PrintWriter out) {
            super(properties);
            this.out = out;
        }

        @Override
        public Future<RecordMetadata> send(
                ProducerRecord<byte[], byte[]> record, Callback callback) {
            long millis = System.currentTimeMillis();
            long began = System.nanoTime();
            return super.send(
                    record,
                    (metadata, failure) -> {
                        double took = (System.nanoTime() - began) / 1e6;
                        String latency = failure == null ? String.format("%.3f", took) : "";
                        int partition = metadata == null ? -1 : metadata.partition();
                        out.printf("%d,%s,%d%n", millis, latency, partition);
                        callback.onCompletion(metadata, failure);
                    });
        }
    }
}
