import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/** The fields {@code name=value} of a command; those named {@code prop.X} are client settings. */
final class Options {
    private static final String PROPERTY = "prop.";
    private final Map<String, String> values = new HashMap<>();

    Options(String[] fields) {
        for (String field : fields) {
            int equals = field.indexOf('=');
            values.put(field.substring(0, equals), field.substring(equals + 1));
        }
    }

    String text(String name) {
        return values.get(name);
    }

    double number(String name) {
        return Double.parseDouble(values.get(name));
    }

    List<TopicPartition> partitions() {
        return Arrays.stream(values.get("partitions").split(","))
                .map(number -> new TopicPartition(values.get("topic"), Integer.parseInt(number)))
                .collect(Collectors.toList());
    }

    Properties properties() {
        Properties properties = new Properties();
        values.forEach(
                (name, value) -> {
                    if (name.startsWith(PROPERTY)) {
                        properties.put(name.substring(PROPERTY.length()), value);
                    }
                });
        return properties;
    }
}
