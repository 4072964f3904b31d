package lockreport;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Stands between one client and the server: it delays, loses and counts messages. */
final class Proxy {
    /** The roles of the scripts of the lock, by their hash. */
    private static final Map<String, String> ROLES = new ConcurrentHashMap<>();

    private static final Pattern CALL = Pattern.compile("redis\\.call\\(\\s*['\"](\\w+)");

    /** A command that the client sent, and when, in ns of System.nanoTime. */
    static final class Sent {
        final long at = System.nanoTime();
        final String role;
        final List<String> words;

        Sent(String role, List<String> words) {
            this.role = role;
            this.words = words;
        }
    }

    final List<Sent> sent = new CopyOnWriteArrayList<>();
    final List<Long> pushed = new CopyOnWriteArrayList<>();

    private final String client;
    private final int server;
    private final Story story;
    private final ServerSocket listening;
    private final List<Socket> toServer = new CopyOnWriteArrayList<>();
    private volatile boolean severed;
    private volatile long cutUntil;

    Proxy(Story story, String client, int server) throws IOException {
        this.story = story;
        this.client = client;
        this.server = server;
        this.listening = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
        daemon(this::accept);
    }

    int port() {
        return listening.getLocalPort();
    }

    /** To the server the client has died: its connections close, and nothing comes from it any more. */
    void sever() {
        severed = true;
        for (Socket s : toServer) {
            close(s);
        }
    }

    /** No message passes for so long. */
    void cut(double ms) {
        cutUntil = System.nanoTime() + (long) (ms * 1e6);
    }

    void close() {
        try {
            listening.close();
        } catch (IOException e) {
            // It is closed.
        }
        sever();
    }

    private void accept() {
        while (true) {
            try {
                Socket from = listening.accept();
                Socket to = new Socket(InetAddress.getLoopbackAddress(), server);
                from.setTcpNoDelay(true);
                to.setTcpNoDelay(true);
                toServer.add(to);
                if (severed) {
                    close(to);
                }
                Queue<Message> pending = new ConcurrentLinkedQueue<>();
                daemon(() -> requests(from, to, pending));
                daemon(() -> replies(from, to, pending));
            } catch (IOException e) {
                return;
            }
        }
    }

    private void requests(Socket from, Socket to, Queue<Message> pending) {
        try (InputStream in = new BufferedInputStream(from.getInputStream())) {
            OutputStream out = to.getOutputStream();
            while (true) {
                Resp r = Resp.read(in);
                Message m = new Message(client, r.words);
                sent.add(new Sent(m.role, r.words));
                if (severed) {
                    continue;
                }
                Rule rule = story.meet(m, "request");
                if (rule != null && !rule.passes(m, "request", from)) {
                    continue;
                }
                Story.rest(story.latency());
                if (severed || System.nanoTime() < cutUntil) {
                    continue;
                }
                pending.add(m);
                out.write(r.raw);
                out.flush();
            }
        } catch (IOException e) {
            if (!severed) {
                close(to);
            }
        }
    }

    private void replies(Socket from, Socket to, Queue<Message> pending) {
        try (InputStream in = new BufferedInputStream(to.getInputStream())) {
            OutputStream out = from.getOutputStream();
            while (true) {
                Resp r = Resp.read(in);
                boolean push = r.raw[0] == '*' && r.words.size() >= 3 && r.words.get(0).endsWith("message");
                Message m = push ? new Message(client, r.words.get(1)) : pending.poll();
                if (m == null) {
                    m = new Message(client, "");
                }
                Rule rule = severed ? null : story.meet(m, "reply");
                if (rule != null && !rule.passes(m, "reply", from)) {
                    continue;
                }
                Story.rest(story.latency());
                if (severed || System.nanoTime() < cutUntil) {
                    continue;
                }
                if (push) {
                    pushed.add(System.nanoTime());
                }
                out.write(r.raw);
                out.flush();
            }
        } catch (IOException e) {
            if (!severed) {
                close(from);
            }
        }
    }

    /** A request, with its reply, or a published message. */
    static final class Message {
        final String client;
        final String command;
        final String role;
        final List<String> channels = new ArrayList<>();

        Message(String client, List<String> words) {
            this.client = client;
            this.command = words.get(0).toUpperCase(Locale.ROOT);
            if (command.equals("EVAL")) {
                ROLES.put(sha1(words.get(1)), roleOf(words.get(1)));
                role = roleOf(words.get(1));
            } else if (command.equals("SCRIPT") && words.size() > 2) {
                ROLES.put(sha1(words.get(2)), roleOf(words.get(2)));
                role = "";
            } else {
                role = command.equals("EVALSHA") ? ROLES.getOrDefault(words.get(1), "") : "";
            }
            if (command.contains("SUBSCRIBE")) {
                channels.addAll(words.subList(1, words.size()));
            }
        }

        Message(String client, String channel) {
            this.client = client;
            this.command = "";
            this.role = "";
            channels.add(channel);
        }
    }

    /** What a script of the lock is for, by the commands that it may call. */
    private static String roleOf(String script) {
        List<String> calls = new ArrayList<>();
        for (Matcher m = CALL.matcher(script); m.find(); ) {
            calls.add(m.group(1).toLowerCase(Locale.ROOT));
        }
        boolean counts = calls.contains("hincrby") || calls.contains("hset");
        boolean deletes = calls.contains("del");
        if (counts) {
            return deletes ? "unlock" : "acquire";
        }
        if (deletes) {
            return "force_unlock";
        }
        if (calls.contains("lrem")) {
            return "leave";
        }
        return calls.contains("pexpire") ? "renew" : "";
    }

    private static String sha1(String text) {
        try {
            StringBuilder hex = new StringBuilder();
            for (byte b : MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8))) {
                hex.append(String.format("%02x", b));
            }
            return hex.toString();
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    /** What happens to the messages that it matches. An empty field matches every message. */
    static final class Rule {
        private String client = "";
        private String direction = "";
        private String command = "";
        private String role = "";
        private String channel = "";
        private int nth;
        private int every;
        private double from;
        private double until = Double.MAX_VALUE;
        private String what;
        private double delay;
        private String error;
        private int matched;

        Rule of(String client) {
            this.client = client;
            return this;
        }

        Rule requests() {
            direction = "request";
            return this;
        }

        Rule replies() {
            direction = "reply";
            return this;
        }

        Rule command(String command) {
            this.command = command;
            return this;
        }

        /** The commands that run a script of the lock: acquire, unlock, renew, force_unlock or leave. */
        Rule script(String role) {
            this.role = role;
            return this;
        }

        Rule channel(String glob) {
            this.channel = glob;
            return this;
        }

        Rule nth(int n) {
            nth = n;
            return this;
        }

        Rule every(int n) {
            every = n;
            return this;
        }

        /** It begins then, in ms since the start. */
        Rule from(double ms) {
            from = ms;
            return this;
        }

        Rule until(double ms) {
            until = ms;
            return this;
        }

        Rule drop() {
            what = "drop";
            return this;
        }

        Rule delay(double ms) {
            what = "delay";
            delay = ms;
            return this;
        }

        /** Keeps the message until the rule ends. */
        Rule hold() {
            what = "hold";
            return this;
        }

        Rule reset() {
            what = "reset";
            return this;
        }

        Rule error(String text) {
            what = "error";
            error = text;
            return this;
        }

        /** Counts the message if the rule matches it, and reports whether it strikes. */
        synchronized boolean strikes(Message m, String direction, double nowMs) {
            boolean meets = nowMs >= from && nowMs < until
                    && (client.isEmpty() || client.equals(m.client))
                    && (this.direction.isEmpty() || this.direction.equals(direction))
                    && (command.isEmpty() || command.equals(m.command))
                    && (role.isEmpty() || role.equals(m.role))
                    && (channel.isEmpty() || m.channels.stream().anyMatch(c -> c.matches(regex(channel))));
            if (!meets) {
                return false;
            }
            matched++;
            return (nth == 0 || matched == nth) && (every == 0 || matched % every == 0);
        }

        private static String regex(String glob) {
            return ("\\Q" + glob + "\\E").replace("*", "\\E.*\\Q").replace("?", "\\E.\\Q");
        }

        /** Does what the rule says with a message, and reports whether it goes on. */
        boolean passes(Message m, String direction, Socket client) throws IOException {
            switch (what) {
                case "delay":
                    Story.rest(delay);
                    return true;
                case "hold":
                    Story.rest(Math.min(until - Story.nowMs(), 3_600_000));
                    return true;
                case "reset":
                    client.setSoLinger(true, 0);
                    close(client);
                    return false;
                case "error":
                    client.getOutputStream().write(("-" + error + "\r\n").getBytes(StandardCharsets.UTF_8));
                    return false;
                default:
                    return false;
            }
        }
    }

    /** A latency between both, in ms. */
    static double draw(double min, double max) {
        return min == max ? min : ThreadLocalRandom.current().nextDouble(min, max);
    }

    static void close(Socket s) {
        try {
            s.close();
        } catch (IOException e) {
            // It is closed.
        }
    }

    static void daemon(Runnable work) {
        Thread t = new Thread(work);
        t.setDaemon(true);
        t.start();
    }
}
