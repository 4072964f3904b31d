package lockstep.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Runs the library's locks as standard input says and writes what came of it to standard output.
 *
 * <p>A command is a line of tab-separated key=value pairs, with an id and a verb (do); its answer has the same id. Commands
 * are begun in the order in which they come and answered when they are done, so a call that blocks holds up nothing but
 * its own thread. The verbs:
 *
 * <pre>
 * client     client, mode, address, ... (see Settings)    makes a client
 * thread     client, thread                               makes a thread of a client, if there is none yet
 * call       client, thread, op, kind, lock, object,      calls a lock's method on that thread (see Calls)
 *            wait, lease, unit
 * interrupt  client, thread, where                        interrupts it: where=latch once it waits for a message, where=now
 * waits      client, thread                               answers once its call waits for a message, or soon after that it does not
 * close      client                                       shuts it down
 * beat       every, longest                               tells from now on when the JVM stood still for longer, both in ms
 * </pre>
 *
 * <p>A time in which the JVM stood still is a line without an id, with its instants from and to on the monotonic clock in ns.
 *
 * <p>An answer has value, or error (the class of the exception) and message; and uuid and jvm_thread, the halves of an owner.
 */
public final class Driver {
    private final PrintStream answers;
    private final Map<String, Member> members = new ConcurrentHashMap<>();
    private final Shared shared = new Shared();
    private final ExecutorService aside = Executors.newCachedThreadPool(Shared.daemons("aside"));

    private Driver(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // nobody else's words among the answers
        Driver driver = new Driver(answers);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null;) {
            Map<String, String> command = parse(line);
            try {
                driver.run(command);
            } catch (RuntimeException e) {
                driver.answer(command, null, () -> {
                    throw e;
                });
            }
        }
        System.exit(0); // clients die with their JVM: nothing is unlocked
    }

    private void run(Map<String, String> command) {
        switch (need(command, "do")) {
            case "client":
                aside.execute(() -> answer(command, null, () -> {
                    Member m = new Member(Settings.client(command, shared));
                    members.put(need(command, "client"), m);
                    return m.watchdogMillis();
                }));
                break;
            case "thread":
                answer(command, member(command).worker(need(command, "thread")), () -> "ok");
                break;
            case "call":
                Worker worker = member(command).worker(need(command, "thread"));
                worker.execute(() -> {
                    answer(command, worker, () -> Calls.run(member(command), command));
                    Thread.interrupted(); // what is left of an interrupt is not for the next call
                });
                break;
            case "interrupt":
                Worker target = member(command).worker(need(command, "thread"));
                aside.execute(() -> answer(command, target, () -> target.interrupt("now".equals(command.get("where")))));
                break;
            case "waits":
                Worker waiter = member(command).worker(need(command, "thread"));
                aside.execute(() -> answer(command, waiter, waiter::waits));
                break;
            case "close":
                aside.execute(() -> answer(command, null, () -> {
                    Member m = members.remove(need(command, "client"));
                    m.close();
                    return "ok";
                }));
                break;
            case "beat":
                long every = Long.parseLong(need(command, "every")) * 1_000_000;
                long longest = Long.parseLong(need(command, "longest")) * 1_000_000;
                Shared.daemons("beat").newThread(() -> beat(every, longest)).start();
                answer(command, null, () -> "ok");
                break;
            default:
                answer(command, null, () -> {
                    throw new IllegalArgumentException("unknown verb " + command.get("do"));
                });
        }
    }

    private void beat(long every, long longest) {
        for (long last = System.nanoTime();;) {
            try {
                Thread.sleep(every / 1_000_000);
            } catch (InterruptedException e) {
                return;
            }
            long now = System.nanoTime();
            if (now - last - every > longest) {
                write("from=" + last + "\tto=" + now);
            }
            last = now;
        }
    }

    private void write(CharSequence line) {
        synchronized (answers) {
            answers.append(line).append('\n');
            answers.flush();
        }
    }

    private Member member(Map<String, String> command) {
        Member m = members.get(need(command, "client"));
        if (m == null) {
            throw new IllegalArgumentException("no client " + command.get("client"));
        }
        return m;
    }

    interface Work {
        Object run() throws Exception;
    }

    private void answer(Map<String, String> command, Worker worker, Work work) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", need(command, "id"));
        try {
            answer.put("value", work.run());
        } catch (Throwable e) {
            answer.put("error", e.getClass().getName());
            answer.put("message", e.getMessage());
            answer.put("cause", e.getCause() == null ? "" : e.getCause().getClass().getName());
        }
        Member m = members.get(command.getOrDefault("client", ""));
        if (m != null) {
            answer.put("uuid", m.uuid());
        }
        if (worker != null) {
            answer.put("jvm_thread", worker.thread().getId());
        }
        StringBuilder line = new StringBuilder();
        answer.forEach((k, v) -> line.append(line.length() == 0 ? "" : "\t").append(k).append('=').append(flat(v)));
        write(line);
    }

    private static String flat(Object v) {
        return String.valueOf(v).replace('\t', ' ').replace('\n', ' ').replace('\r', ' ');
    }

    private static Map<String, String> parse(String line) {
        Map<String, String> command = new LinkedHashMap<>();
        for (String pair : line.split("\t")) {
            int eq = pair.indexOf('=');
            if (eq < 0) {
                throw new IllegalArgumentException("not key=value: " + pair);
            }
            command.put(pair.substring(0, eq), pair.substring(eq + 1));
        }
        return command;
    }

    static String need(Map<String, String> command, String key) {
        String v = command.get(key);
        if (v == null) {
            throw new IllegalArgumentException("command without " + key + ": " + command);
        }
        return v;
    }
}
