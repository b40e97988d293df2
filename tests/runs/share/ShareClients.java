import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of share groups in one JVM, driven by lines on standard input, as tests/java is.
 *
 * <p>A line is {@code consume ID name=value...} or {@code stop ID}. Share groups are turned on in
 * the cluster, and read from the start of a topic.
 */
final class ShareClients {
    private static final String FEATURE = "share.version";

    private ShareClients() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Member> members = new HashMap<>();
        BufferedReader commands =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] fields = line.split("\t");
            if (fields[0].equals("stop")) {
                members.get(fields[1]).stopping = true;
                continue;
            }
            Map<String, String> options = new HashMap<>();
            for (int at = 2; at < fields.length; at++) {
                String[] pair = fields[at].split("=", 2);
                options.put(pair[0], pair[1]);
            }
            Member member = new Member(fields[1], options);
            members.put(fields[1], member);
            new Thread(member, fields[1]).start();
        }
        System.exit(0);
    }

    /** One member, in a thread of its own. */
    private static final class Member implements Runnable {
        private final String id;
        private final Map<String, String> options;
        volatile boolean stopping;

        Member(String id, Map<String, String> options) {
            this.id = id;
            this.options = options;
        }

        @Override
        public void run() {
            try {
                prepare();
                read();
                write("\"event\":\"done\"");
            } catch (Throwable error) {
                error.printStackTrace();
                write("\"event\":\"crashed\",\"error\":\"" + error.getClass().getName() + "\"");
            }
        }

        private Properties properties() {
            Properties properties = new Properties();
            for (String name : List.of("bootstrap.servers", "client.id", "group.id")) {
                properties.put(name, options.get("prop." + name));
            }
            return properties;
        }

        private void prepare() throws Exception {
            Properties properties = properties();
            properties.remove("group.id");
            String group = options.get("prop.group.id");
            try (Admin admin = Admin.create(properties)) {
                Map<String, FinalizedVersionRange> features =
                        admin.describeFeatures().featureMetadata().get().finalizedFeatures();
                if (!features.containsKey(FEATURE)) {
                    FeatureUpdate on =
                            new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
                    admin.updateFeatures(Map.of(FEATURE, on), new UpdateFeaturesOptions())
                            .all()
                            .get();
                }
                AlterConfigOp fromStart =
                        new AlterConfigOp(
                                new ConfigEntry("share.auto.offset.reset", "earliest"),
                                AlterConfigOp.OpType.SET);
                ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
                admin.incrementalAlterConfigs(Map.of(resource, List.of(fromStart))).all().get();
            }
        }

        private void read() {
            Properties properties = properties();
            properties.put("share.acknowledgement.mode", "explicit");
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaShareConsumer<byte[], byte[]> consumer =
                    new KafkaShareConsumer<>(properties, bytes, bytes)) {
                consumer.setAcknowledgementCommitCallback(this::noteRefused);
                consumer.subscribe(List.of(options.get("topic")));
                write("\"event\":\"started\"");
                while (!stopping) {
                    for (ConsumerRecord<byte[], byte[]> record :
                            consumer.poll(Duration.ofMillis(100))) {
                        report(record);
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    }
                    consumer.commitSync();
                }
            }
        }

        /** Write to the log which acknowledgements were refused: these records are read again. */
        private void noteRefused(Map<TopicIdPartition, Set<Long>> offsets, Exception error) {
            if (error != null) {
                offsets.forEach(
                        (where, refused) ->
                                refused.forEach(
                                        offset ->
                                                System.err.printf(
                                                        "refused %d %d %s%n",
                                                        where.partition(), offset, error)));
            }
        }

        private void report(ConsumerRecord<byte[], byte[]> record) {
            String[] fields = new String(record.value(), StandardCharsets.UTF_8).split("\\|");
            Instant instant = Instant.now();
            double now = instant.getEpochSecond() + instant.getNano() / 1e9;
            write(
                    String.format(
                            Locale.ROOT,
                            "\"event\":\"consumed\",\"partition\":%d,\"offset\":%d,\"producer\":\"%s\","
                                    + "\"seq\":%s,\"at\":%.6f,\"latency_ms\":%.3f",
                            record.partition(),
                            record.offset(),
                            fields[0],
                            fields[2],
                            now,
                            (now - Double.parseDouble(fields[3])) * 1e3));
        }

        private void write(String fields) {
            synchronized (System.out) {
                System.out.println("{\"id\":\"" + id + "\"," + fields + "}");
                System.out.flush();
            }
        }
    }
}
