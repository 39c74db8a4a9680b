package sdk;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;

/** Runs operations on azure-messaging-servicebus: a line of standard input asks for one, a line of output tells of it. */
public final class Run {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            System.out.println(JSON.writeValueAsString(done(asked)));
        }
        System.exit(0); // whatever an SDK still waits for
    }

    private static Map<String, Object> done(JsonNode asked) {
        long began = System.nanoTime();
        String outcome = "passed";
        String said = "";
        try (Place place = new Place(asked.get("place"))) {
            operation(asked.get("operation").asText()).run(place);
        } catch (AbsentFromSdk absent) {
            outcome = "absent";
            said = absent.getMessage();
        } catch (Throwable failure) {
            outcome = "failed";
            StringWriter words = new StringWriter();
            failure.printStackTrace(new PrintWriter(words));
            said = words.toString();
        }
        double seconds = (System.nanoTime() - began) / 1_000_000 / 1000.0;
        return Map.of("outcome", outcome, "said", said, "seconds", seconds);
    }

    /** send_single is in operations.SendSingle, administration.update in administration.Update. */
    private static Operation operation(String name) throws ReflectiveOperationException {
        int dot = name.indexOf('.');
        String folder = dot < 0 ? "operations" : name.substring(0, dot);
        String file = Arrays.stream(name.substring(dot + 1).split("_"))
            .map(word -> word.substring(0, 1).toUpperCase() + word.substring(1))
            .collect(Collectors.joining());
        return (Operation) Class.forName(folder + "." + file).getDeclaredConstructor().newInstance();
    }
}
