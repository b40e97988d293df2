import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Admin calls on a topic of its own, each followed by a look at its effect. */
final class AdminRun extends Run {
    private static final long LOOK_EVERY_NS = 100_000_000;
    private static final short REPLICAS = 3;
    private final String topic;

    AdminRun(String id, Options options) {
        super(id, options);
        topic = options.text("topic");
    }

    @Override
    void work() throws Exception {
        try (Admin admin = Admin.create(options.properties())) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.of(REPLICAS))))
                    .all()
                    .get();
            see("create", () -> admin.listTopics().names().get().contains(topic));
            see("describe", () -> partitions(admin) == 1);
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
            see("grow", () -> partitions(admin) == 2);
            see("settings", () -> hasSetting(admin, "min.insync.replicas"));
            admin.deleteTopics(List.of(topic)).all().get();
            see("delete", () -> !admin.listTopics().names().get().contains(topic));
        }
    }

    private int partitions(Admin admin) throws Exception {
        try {
            return described(admin).get(topic).partitions().size();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return 0;
            }
            throw error;
        }
    }

    /** The only call that 2.8 has is not in 4.0 any more, which has its successor of 3.1. */
    @SuppressWarnings("unchecked")
    private Map<String, TopicDescription> described(Admin admin) throws Exception {
        DescribeTopicsResult result = admin.describeTopics(List.of(topic));
        Method all;
        try {
            all = DescribeTopicsResult.class.getMethod("allTopicNames");
        } catch (NoSuchMethodException old) {
            all = DescribeTopicsResult.class.getMethod("all");
        }
        return ((Future<Map<String, TopicDescription>>) all.invoke(result)).get();
    }

    private boolean hasSetting(Admin admin, String name) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name) != null;
    }

    private void see(String call, Callable<Boolean> effect) throws Exception {
        // Brokers learn of each other's changes a moment later; the harness has the deadline.
        while (!effect.call()) {
            LockSupport.parkNanos(LOOK_EVERY_NS);
        }
        Events.write(id, "called", "call", call);
    }
}
