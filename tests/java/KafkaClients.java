import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Producers and consumers in one JVM, driven by lines on standard input.
 *
 * <p>A line is {@code produce ID name=value...}, the same with {@code consume}, {@code offsets} and
 * {@code administer}, or {@code stop ID}, with tabs between the fields. The process ends when its
 * input does.
 */
final class KafkaClients {
    private KafkaClients() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, Run> runs = new HashMap<>();
        BufferedReader commands =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] fields = line.split("\t");
            String id = fields[1];
            if (fields[0].equals("stop")) {
                runs.remove(id).stop();
                continue;
            }
            Options options = new Options(Arrays.copyOfRange(fields, 2, fields.length));
            Run run = make(fields[0], id, options);
            runs.put(id, run);
            new Thread(run, id).start();
        }
        System.exit(0);
    }

    private static Run make(String verb, String id, Options options) {
        return switch (verb) {
            case "produce" -> new ProducerRun(id, options);
            case "consume" -> new ConsumerRun(id, options);
            case "offsets" -> new OffsetsRun(id, options);
            case "administer" -> new AdminRun(id, options);
            default -> throw new IllegalArgumentException(verb);
        };
    }
}
