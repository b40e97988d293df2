import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Counts records by key in windows of a second, exactly once, until it is told to end (SIGTERM).
 *
 * <p>Arguments: bootstrap servers, the topics to read and to write, the application's id, a folder
 * for its state. A record's key is what its number leaves of 7. Each record makes one of the output:
 * key and window, and the count so far.
 */
final class WindowCounts {
    private WindowCounts() {}

    public static void main(String[] arguments) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("application.id", arguments[3]);
        properties.put("state.dir", arguments[4]);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("num.stream.threads", "2");
        properties.put("replication.factor", "3");
        properties.put("topic.min.insync.replicas", "2");
        properties.put("commit.interval.ms", "100");
        properties.put("statestore.cache.max.bytes", "0");
        properties.put("auto.offset.reset", "earliest");
        KafkaStreams streams =
                new KafkaStreams(topology(arguments[1], arguments[2]).build(), properties);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setUncaughtExceptionHandler(
                error -> {
                    error.printStackTrace();
                    return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
                });
        Thread closing = new Thread(() -> streams.close(Duration.ofSeconds(20)));
        Runtime.getRuntime().addShutdownHook(closing);
        streams.start();
    }

    private static StreamsBuilder topology(String input, String output) {
        Serde<String> texts = Serdes.String();
        Materialized<String, Long, WindowStore<Bytes, byte[]>> counts = Materialized.as("counts");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(texts, texts))
                .groupBy(
                        (key, value) -> "" + Long.parseLong(value.split("\\|")[2]) % 7,
                        Grouped.with("by-number", texts, texts))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(1), Duration.ofHours(1)))
                .count(counts.withKeySerde(texts).withValueSerde(Serdes.Long()))
                .toStream((window, count) -> window.key() + "@" + window.window().start())
                .mapValues(String::valueOf)
                .to(output, Produced.with(texts, texts));
        return builder;
    }
}
