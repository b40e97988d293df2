import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends numbered records to partitions in turn at a steady rate and reports each outcome.
 *
 * <p>With {@code transaction=N} every N records are a transaction; every third one is aborted.
 * Records of a transaction are reported only once it is committed or aborted.
 */
final class ProducerRun extends Run {
    private static final int ABORT_EVERY = 3;
    private final List<TopicPartition> partitions;
    private final long[] next;
    private final int size;
    private KafkaProducer<byte[], byte[]> producer;
    private long sent;

    ProducerRun(String id, Options options) {
        super(id, options);
        partitions = options.partitions();
        next = new long[partitions.size()];
        size = (int) options.number("size");
    }

    /** A record that was sent; its acknowledgement is awaited later where transactions are used. */
    private record Sent(int partition, long seq, double at, Future<RecordMetadata> outcome) {}

    @Override
    void work() throws Exception {
        ByteArraySerializer bytes = new ByteArraySerializer();
        producer = new KafkaProducer<>(options.properties(), bytes, bytes);
        int transaction = (int) options.number("transaction");
        try {
            if (transaction > 0) {
                producer.initTransactions();
            }
            Events.write(id, "started");
            if (transaction > 0) {
                sendTransactions(transaction);
            } else {
                sendRecords();
            }
            producer.flush();
        } finally {
            producer.close();
        }
    }

    private void sendRecords() {
        long started = System.nanoTime();
        while (wantsMore()) {
            pace(started);
            send(true);
        }
    }

    private void sendTransactions(int length) {
        long started = System.nanoTime();
        for (int number = 1; wantsMore(); number++) {
            sendTransaction(length, number % ABORT_EVERY != 0, started);
        }
    }

    private void sendTransaction(int length, boolean commits, long started) {
        List<Sent> records = new ArrayList<>();
        boolean committed = false;
        try {
            producer.beginTransaction();
            while (records.size() < length) {
                pace(started);
                records.add(send(false));
            }
            producer.flush();
            if (commits) {
                producer.commitTransaction();
                committed = true;
            }
        } catch (KafkaException error) {
            error.printStackTrace();
        }
        if (!committed) {
            // After an error that does not allow it, this fails too, and so does the run.
            producer.abortTransaction();
        }
        for (Sent record : records) {
            String event = committed ? "acked" : "aborted";
            report(event, record.partition, record.seq, offset(record), record.at);
        }
    }

    /** The offset of a record whose outcome is known, or -1 if it has none. */
    private static long offset(Sent record) {
        try {
            return record.outcome.get().offset();
        } catch (ExecutionException | InterruptedException error) {
            return -1;
        }
    }

    private boolean wantsMore() {
        double count = options.number("count");
        return !stopping && (count == 0 || sent < count);
    }

    private void pace(long started) {
        double rate = options.number("rate");
        if (rate > 0) {
            long due = started + (long) (sent * 1e9 / rate);
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
        }
    }

    private Sent send(boolean reports) {
        int index = (int) (sent++ % partitions.size());
        TopicPartition where = partitions.get(index);
        long seq = next[index]++;
        double at = Events.now();
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(where.topic(), where.partition(), key(where), value(where, seq, at));
        Future<RecordMetadata> outcome =
                producer.send(
                        record,
                        (metadata, error) -> {
                            if (!reports) {
                                return;
                            }
                            if (error != null) {
                                Events.write(id, "failed", "partition", where.partition(), "seq", seq,
                                        "error", error.toString());
                            } else {
                                long offset = metadata.hasOffset() ? metadata.offset() : -1;
                                report("acked", where.partition(), seq, offset, at);
                            }
                        });
        return new Sent(where.partition(), seq, at, outcome);
    }

    private void report(String event, int partition, long seq, long offset, double sentAt) {
        double now = Events.now();
        Events.write(id, event, "partition", partition, "seq", seq, "offset", offset, "at", now,
                "latency_ms", (now - sentAt) * 1e3);
    }

    private byte[] key(TopicPartition where) {
        return (id + "-" + where.partition()).getBytes(StandardCharsets.UTF_8);
    }

    private byte[] value(TopicPartition where, long seq, double at) {
        String text =
                String.format(Locale.ROOT, "%s|%d|%d|%.6f|", id, where.partition(), seq, at);
        return (text + "x".repeat(Math.max(0, size - text.length()))).getBytes(StandardCharsets.UTF_8);
    }
}
