import java.time.Instant;
import java.util.Locale;
import java.util.StringJoiner;

/** Writes one JSON object a line to standard output, for the harness that reads it. */
final class Events {
    private Events() {}

    /** Seconds since 1970, to the microsecond. */
    static double now() {
        Instant now = Instant.now();
        return now.getEpochSecond() + now.getNano() / 1e9;
    }

    /** Writes an event; {@code fields} are names and values in turn. */
    static void write(String id, String event, Object... fields) {
        StringJoiner line = new StringJoiner(",", "{", "}");
        line.add("\"id\":" + quoted(id)).add("\"event\":" + quoted(event));
        for (int i = 0; i < fields.length; i += 2) {
            line.add(quoted(fields[i].toString()) + ":" + json(fields[i + 1]));
        }
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }

    private static String json(Object value) {
        if (value instanceof Double number) {
            return String.format(Locale.ROOT, "%.6f", number);
        }
        return value instanceof Number ? value.toString() : quoted(String.valueOf(value));
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
