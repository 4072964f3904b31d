package lockreport;

import static org.junit.jupiter.api.Assertions.fail;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisConnectionException;
import org.redisson.client.RedisTimeoutException;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/**
 * Some clients of one redis-server, each behind a proxy, with threads that lock and unlock. It looks at the keys of the locks every
 * few milliseconds, and says afterwards whether a promise was broken. Instants are in ms since the start.
 */
final class Story implements AutoCloseable {
    /** How much an instant may be off. */
    private static final double SLACK = 60;

    private static volatile long begun = System.nanoTime();

    private final BiFunction<RedissonClient, String, RLock> kind;
    private final Process server;
    private final int port;
    private double latencyMin;
    private double latencyMax;
    private final Map<String, Client> clients = new TreeMap<>();
    private final List<Worker> workers = new ArrayList<>();
    private final List<Proxy.Rule> rules = new CopyOnWriteArrayList<>();
    private final List<Event> events = new ArrayList<>();
    private final Map<String, List<Sample>> samples = new TreeMap<>();
    private volatile boolean over;

    /** kind makes the lock object of a name. */
    Story(BiFunction<RedissonClient, String, RLock> kind) throws Exception {
        this.kind = kind;
        String given = System.getProperty("redis.port", "");
        if (!given.isEmpty()) {
            port = Integer.parseInt(given);
            server = null;
            return;
        }
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        server = new ProcessBuilder("redis-server", "--port", "" + port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
                .redirectErrorStream(true).redirectOutput(Path.of("target", "redis-server.log").toFile()).start();
        Runtime.getRuntime().addShutdownHook(new Thread(server::destroyForcibly));
        for (int i = 0; ; i++) {
            try {
                new Socket(InetAddress.getLoopbackAddress(), port).close();
                return;
            } catch (IOException e) {
                if (i == 200) {
                    throw e;
                }
                Thread.sleep(50);
            }
        }
    }

    /** How long each message travels in one direction. */
    void latency(double minMs, double maxMs) {
        latencyMin = minMs;
        latencyMax = maxMs;
    }

    double latency() {
        return Proxy.draw(latencyMin, latencyMax);
    }

    Client client(String name, BiConsumer<Config, SingleServerConfig> settings) throws Exception {
        Client c = new Client(name, settings);
        clients.put(name, c);
        return c;
    }

    Client client(String name) {
        return clients.get(name);
    }

    /** A thread of a client, such as a/1, and what it does. */
    void thread(String name, Script script) {
        workers.add(new Worker(name, clients.get(name.substring(0, name.indexOf('/'))), script));
    }

    void rule(Proxy.Rule rule) {
        rules.add(rule);
    }

    /** Something that happens to a client or to the server at an instant. */
    void at(double ms, Action action) {
        events.add(new Event(ms, action));
    }

    Proxy.Rule meet(Proxy.Message m, String direction) {
        Proxy.Rule found = null;
        for (Proxy.Rule r : rules) {
            if (r.strikes(m, direction, nowMs()) && found == null) {
                found = r;
            }
        }
        return found;
    }

    /** Begins the story, and ends it after so many ms, or when nothing is left to do. locks are the names of the locks. */
    void play(double ms, String... locks) throws Exception {
        List<Proxy.Rule> later = new ArrayList<>(rules);
        rules.clear();
        double min = latencyMin, max = latencyMax;
        latencyMin = latencyMax = 0;
        for (Client c : clients.values()) {
            c.warmUp();
        }
        latencyMin = min;
        latencyMax = max;
        List<Resp> left = ask(Resp.command("FLUSHDB"));
        if (!left.get(0).words.equals(List.of("OK"))) {
            throw new IllegalStateException("FLUSHDB: " + left.get(0).words);
        }
        for (Client c : clients.values()) {
            c.proxy.sent.clear();
            c.proxy.pushed.clear();
        }
        for (String lock : locks) {
            samples.put(lock, new ArrayList<>());
        }
        CountDownLatch ready = new CountDownLatch(workers.size());
        CountDownLatch start = new CountDownLatch(1);
        for (Worker w : workers) {
            w.thread = new Thread(() -> w.run(ready, start), w.name);
            w.thread.setDaemon(true);
            w.thread.start();
        }
        ready.await();
        begun = System.nanoTime();
        rules.addAll(later);
        start.countDown();
        for (Event e : events) {
            Proxy.daemon(() -> {
                rest(e.at - nowMs());
                if (!over) {
                    e.action.run();
                }
            });
        }
        try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
            InputStream in = new BufferedInputStream(s.getInputStream());
            while (nowMs() < ms) {
                for (String lock : locks) {
                    samples.get(lock).add(look(s.getOutputStream(), in, lock));
                }
                rest(3);
            }
        }
        over = true;
    }

    private static final String LOOK = "local q = 'redisson_lock_queue:{' .. KEYS[1] .. '}' "
            + "local out = {tostring(redis.call('pttl', KEYS[1])), tostring(redis.call('llen', q))} "
            + "for _, v in ipairs(redis.call('lrange', q, 0, -1)) do table.insert(out, v) end "
            + "for _, v in ipairs(redis.call('hgetall', KEYS[1])) do table.insert(out, v) end return out";

    private Sample look(OutputStream out, InputStream in, String lock) throws IOException {
        out.write(Resp.command("EVAL", LOOK, "1", lock));
        out.flush();
        List<String> w = Resp.read(in).words;
        Sample s = new Sample();
        s.at = nowMs();
        s.ttl = Long.parseLong(w.get(0));
        int queued = Integer.parseInt(w.get(1));
        s.queue = w.subList(2, 2 + queued);
        for (int i = 2 + queued; i + 1 < w.size(); i += 2) {
            s.holds.put(w.get(i), Integer.parseInt(w.get(i + 1)));
        }
        return s;
    }

    /** Sends a command to the server itself. */
    List<Resp> ask(byte[]... commands) throws IOException {
        List<Resp> out = new ArrayList<>();
        try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
            InputStream in = new BufferedInputStream(s.getInputStream());
            for (byte[] c : commands) {
                s.getOutputStream().write(c);
                out.add(Resp.read(in));
            }
        }
        return out;
    }

    /** Deletes the keys that a glob matches. */
    void delete(String glob) {
        try {
            for (String key : ask(Resp.command("KEYS", glob)).get(0).words) {
                if (!key.matches("\\d+")) {
                    ask(Resp.command("DEL", key));
                }
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        over = true;
        for (Client c : clients.values()) {
            c.proxy.close();
            Proxy.daemon(() -> c.redisson.shutdown());
        }
        for (Worker w : workers) {
            if (w.thread != null) {
                w.thread.interrupt();
            }
        }
        rest(500);
        if (server != null) {
            server.destroyForcibly();
        }
    }

    static double nowMs() {
        return (System.nanoTime() - begun) / 1e6;
    }

    static void rest(double ms) {
        for (long end = System.nanoTime() + (long) (ms * 1e6), left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
            if (Thread.interrupted()) {
                // A rest ends when its time is over, and nothing else wakes it.
                continue;
            }
        }
    }

    interface Script {
        void run(Worker t) throws Exception;
    }

    interface Action {
        void run();
    }

    interface Use {
        void with(RLock lock) throws Exception;
    }

    interface Try {
        boolean with(RLock lock) throws Exception;
    }

    private static final class Event {
        final double at;
        final Action action;

        Event(double at, Action action) {
            this.at = at;
            this.action = action;
        }
    }

    /** What the server had. */
    private static final class Sample {
        double at;
        long ttl;
        List<String> queue;
        final Map<String, Integer> holds = new HashMap<>();
    }

    /** A process that uses Redisson. */
    final class Client {
        final String name;
        final Proxy proxy;
        final RedissonClient redisson;
        private final Map<String, RLock> objects = new HashMap<>();
        private boolean perCall;
        private volatile double died = Double.MAX_VALUE;

        private Client(String name, BiConsumer<Config, SingleServerConfig> settings) throws Exception {
            this.name = name;
            proxy = new Proxy(Story.this, name, port);
            Config config = new Config();
            SingleServerConfig one = config.useSingleServer().setAddress("redis://127.0.0.1:" + proxy.port());
            one.setConnectionPoolSize(64).setConnectionMinimumIdleSize(4).setSubscriptionConnectionMinimumIdleSize(1);
            settings.accept(config, one);
            redisson = Redisson.create(config);
        }

        /** Each call gets a lock object of its own. */
        Client objectPerCall() {
            perCall = true;
            return this;
        }

        synchronized RLock lock(String name) {
            return perCall ? kind.apply(redisson, name) : objects.computeIfAbsent(name, n -> kind.apply(redisson, n));
        }

        /** The process dies. */
        void crash() {
            died = nowMs();
            proxy.sever();
        }

        /** The classes of the library are loaded, and the server knows its scripts. Nothing is renewed, so that no timer is left. */
        private void warmUp() throws Exception {
            RLock lock = kind.apply(redisson, "warm-up:" + name);
            for (int i = 0; i < 3; i++) {
                lock.lock(60, TimeUnit.SECONDS);
                Thread waiter = new Thread(() -> {
                    try {
                        if (lock.tryLock(2, 60, TimeUnit.SECONDS)) {
                            lock.unlock();
                        }
                        lock.lock(60, TimeUnit.SECONDS);
                        lock.unlock();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
                waiter.start();
                Thread.sleep(30);
                lock.unlock();
                waiter.join();
                lock.forceUnlock();
            }
        }
    }

    /**
     * A call of a lock, with what came of it: granted, busy, released, not_held, free, error, or unknown if its command may
     * have run; "": it did not return.
     */
    private static final class Call {
        String op;
        String lock;
        double lease; // in ms; 0: none
        double from;
        double to = Double.MAX_VALUE;
        String outcome = "";
        boolean interrupted;

        boolean acquires() {
            return op.equals("lock") || op.equals("tryLock");
        }
    }

    /** A level of a hold in which its thread believes. */
    private static final class Belief {
        double from;
        double to = Double.MAX_VALUE;
        double lease;
    }

    /** A thread of a client. */
    final class Worker {
        final String name;
        final Client client;
        private final Script script;
        private volatile Thread thread;
        private volatile String owner;
        private final List<Call> calls = new CopyOnWriteArrayList<>();

        private Worker(String name, Client client, Script script) {
            this.name = name;
            this.client = client;
            this.script = script;
        }

        private void run(CountDownLatch ready, CountDownLatch start) {
            owner = client.redisson.getId() + ":" + Thread.currentThread().getId();
            ready.countDown();
            try {
                start.await();
                script.run(this);
            } catch (Throwable e) {
                if (!over && nowMs() < client.died) {
                    System.err.println(name + ": " + e);
                }
            }
        }

        /** Waits for an instant. */
        void at(double ms) {
            rest(ms - nowMs());
        }

        void sleep(double ms) {
            rest(ms);
        }

        boolean before(double ms) {
            return nowMs() < ms && !over;
        }

        /** Calls lock(), of which the lease in ms is told again; 0: none. It reports whether the lock was granted. */
        boolean lock(String name, double lease, Use use) {
            return call("lock", name, lease, lock -> {
                use.with(lock);
                return true;
            });
        }

        boolean tryLock(String name, double lease, Try use) {
            return call("tryLock", name, lease, use);
        }

        boolean unlock(String name) {
            return call("unlock", name, 0, lock -> {
                lock.unlock();
                return true;
            });
        }

        boolean forceUnlock(String name) {
            return call("forceUnlock", name, 0, RLock::forceUnlock);
        }

        private boolean call(String op, String name, double lease, Try use) {
            if (over) {
                return false;
            }
            Call c = new Call();
            c.op = op;
            c.lock = name;
            c.lease = lease;
            RLock lock = client.lock(name);
            c.from = nowMs();
            calls.add(c);
            boolean yes = false;
            try {
                yes = use.with(lock);
                c.outcome = c.acquires() ? yes ? "granted" : "busy" : op.equals("unlock") || yes ? "released" : "free";
            } catch (IllegalMonitorStateException e) {
                c.outcome = "not_held";
            } catch (Exception e) {
                c.outcome = unanswered(e) ? "unknown" : "error";
            }
            Thread.interrupted();
            c.to = nowMs();
            return yes;
        }

        /** Reports whether the command of the call may have run although it failed. */
        private boolean unanswered(Throwable e) {
            for (; e != null; e = e.getCause()) {
                if (e instanceof RedisTimeoutException || e instanceof RedisConnectionException) {
                    return true;
                }
            }
            return false;
        }

        /** Interrupts the thread if it is in a call. */
        void interrupt() {
            Call c = open();
            if (c != null) {
                c.interrupted = true;
                thread.interrupt();
            }
        }

        private Call open() {
            Call last = calls.isEmpty() ? null : calls.get(calls.size() - 1);
            return last != null && last.to == Double.MAX_VALUE ? last : null;
        }

        /** What the thread believes to hold, a belief for each level. It ends with the unlock, the lease or the process. */
        private List<Belief> beliefs(String lock) {
            List<Belief> all = new ArrayList<>();
            List<Belief> stack = new ArrayList<>();
            for (Call c : calls) {
                if (!c.lock.equals(lock)) {
                    continue;
                }
                if (c.acquires() && c.outcome.equals("granted")) {
                    Belief b = new Belief();
                    b.from = c.to;
                    b.lease = c.lease;
                    b.to = Math.min(client.died, c.lease > 0 ? c.from + c.lease : Double.MAX_VALUE);
                    all.add(b);
                    stack.add(b);
                } else if (c.outcome.equals("not_held")) { // the thread is told that it holds nothing
                    for (Belief b : stack) {
                        b.to = Math.min(b.to, c.to);
                    }
                    stack.clear();
                } else if (c.op.equals("unlock") && !c.outcome.equals("error") && !stack.isEmpty()) {
                    Belief b = stack.remove(stack.size() - 1);
                    b.to = Math.min(b.to, c.from);
                }
            }
            for (Worker w : workers) {
                for (Call c : w.calls) {
                    if (c.op.equals("forceUnlock") && c.lock.equals(lock) && c.outcome.equals("released")) {
                        for (Belief b : all) {
                            if (b.from < c.to) {
                                b.to = Math.min(b.to, c.from);
                            }
                        }
                    }
                }
            }
            return all;
        }

        private boolean believes(String lock, double at) {
            return beliefs(lock).stream().anyMatch(b -> b.from <= at && at <= b.to);
        }

        private boolean inCall(String lock, double at) {
            return calls.stream().anyMatch(c -> c.lock.equals(lock) && c.from - SLACK <= at && at <= c.to + SLACK);
        }
    }

    private Worker worker(String name) {
        return workers.stream().filter(w -> w.name.equals(name)).findFirst().orElseThrow();
    }

    /** Interrupts a thread if it is in a call. */
    void interrupt(String thread) {
        worker(thread).interrupt();
    }

    private static String ms(double at) {
        return String.format("%.0f ms", at);
    }

    /** Fails if two threads believed to hold the lock at one time. */
    void assertOneOwner(String lock) {
        for (Worker a : workers) {
            for (Worker b : workers) {
                for (Belief x : a.beliefs(lock)) {
                    for (Belief y : b.beliefs(lock)) {
                        double from = Math.max(x.from, y.from), to = Math.min(Math.min(x.to, y.to), nowMs());
                        if (a != b && x.from <= y.from && to - from > SLACK) {
                            fail(b.name + " was granted " + lock + " at " + ms(y.from) + " while " + a.name + " held it since " + ms(x.from));
                        }
                    }
                }
            }
        }
    }

    /** Fails if the server had no hold of the thread while it held the lock. */
    void assertHoldStays(String lock, String thread) {
        Worker w = worker(thread);
        List<Belief> beliefs = w.beliefs(lock);
        for (Sample s : samples.get(lock)) {
            boolean sure = beliefs.stream().anyMatch(b -> b.from + SLACK < s.at && s.at < b.to - SLACK);
            if (sure && !s.holds.containsKey(w.owner)) {
                fail(thread + " holds " + lock + ", but at " + ms(s.at) + " the server has " + s.holds);
            }
        }
    }

    /** Fails if a hold has a longer time to live than its thread asked for, or than the watchdog gives. */
    void assertLeaseIsNotLonger(String lock, String thread, double watchdog) {
        Worker w = worker(thread);
        List<Belief> beliefs = w.beliefs(lock);
        for (Sample s : samples.get(lock)) {
            double most = -1;
            for (Belief b : beliefs) {
                if (b.from + SLACK < s.at && s.at < b.to - SLACK) {
                    most = Math.max(most, b.lease > 0 ? b.lease : watchdog);
                }
            }
            if (most >= 0 && s.holds.containsKey(w.owner) && (s.ttl > most + SLACK || s.ttl == -1)) {
                fail(thread + " asked for " + ms(most) + " at most, but at " + ms(s.at) + " its hold of " + lock + " has " + s.ttl + " ms to live");
            }
        }
    }

    /** Fails if the client renews the hold of a thread that has given the lock up. */
    void assertNoRenewalAfterUnlock(String lock, String thread) {
        Worker w = worker(thread);
        double last = -1;
        for (Call c : w.calls) {
            if (c.lock.equals(lock)) {
                last = Math.max(last, c.to);
            }
        }
        for (Proxy.Sent m : w.client.proxy.sent) {
            double at = (m.at - begun) / 1e6;
            if (m.role.equals("renew") && m.words.contains(lock) && m.words.contains(w.owner) && !w.inCall(lock, at) && !w.believes(lock, at)) {
                fail("a renewal of " + lock + " for " + thread + " was sent at " + ms(at) + ", and its last call had returned at " + ms(last));
            }
        }
    }

    /** Fails if the thread waits for longer than that while nobody holds the lock. */
    void assertFreeLockIsGiven(String lock, String thread, double most) {
        Worker w = worker(thread);
        for (Call c : w.calls) {
            double free = -1;
            for (Sample s : samples.get(lock)) {
                boolean waits = c.acquires() && c.lock.equals(lock) && c.from < s.at && s.at < Math.min(c.to, w.client.died) && !c.interrupted;
                if (!waits || !s.holds.isEmpty()) {
                    boolean believed = waits && workers.stream().anyMatch(x -> x != w && x.believes(lock, s.at));
                    free = -1;
                    if (!believed) {
                        continue;
                    }
                } else if (workers.stream().anyMatch(x -> x.believes(lock, s.at))) {
                    free = -1;
                } else if (free < 0) {
                    free = s.at;
                }
                if (free >= 0 && s.at - free > most + SLACK) {
                    fail(thread + " waits for " + lock + ", which is free since " + ms(free) + ", and has not got it at " + ms(s.at));
                }
            }
        }
    }

    /** Fails if the lock exists on the server for longer than that, nobody holds it, and the thread waits for it. */
    void assertNoHoldForNobody(String lock, String thread, double most) {
        Worker w = worker(thread);
        for (Call c : w.calls) {
            double since = -1;
            for (Sample s : samples.get(lock)) {
                boolean waits = c.acquires() && c.lock.equals(lock) && c.from < s.at && s.at < Math.min(c.to, w.client.died) && !c.interrupted;
                if (!waits || workers.stream().anyMatch(x -> x.believes(lock, s.at))) {
                    since = -1;
                } else if (since < 0) {
                    since = s.at;
                } else if (s.at - since > most + SLACK) {
                    fail(thread + " waits for " + lock + ", which nobody has held since " + ms(since) + ", and at " + ms(s.at) + " the server has " + s.holds);
                }
            }
        }
    }

    /** Fails if a thread is granted the lock before one that asked earlier and still waits. */
    void assertOrder(String lock) {
        for (Worker a : workers) {
            for (Call x : a.calls) {
                for (Worker b : workers) {
                    for (Call y : b.calls) {
                        boolean both = a != b && x.acquires() && y.acquires() && x.lock.equals(lock) && y.lock.equals(lock);
                        if (both && y.outcome.equals("granted") && x.from + SLACK < y.from && y.to + SLACK < Math.min(x.to, a.client.died) && !x.interrupted) {
                            fail(b.name + " asked for " + lock + " at " + ms(y.from) + " and was granted it at " + ms(y.to)
                                    + ", before " + a.name + ", which had asked at " + ms(x.from) + " and still waited");
                        }
                    }
                }
            }
        }
    }

    /** Fails if the n-th call of a thread, from 1, came to something else than these. */
    void assertCall(String thread, int n, String... wanted) {
        Call c = call(thread, n);
        if (!Arrays.asList(wanted).contains(c.outcome)) {
            fail(c.op + " of " + c.lock + " by " + thread + ", called at " + ms(c.from) + ", is " + said(c) + " and not " + String.join(" or ", wanted));
        }
    }

    /** Fails if the n-th call of a thread, from 1, came to that. */
    void assertCallIsNot(String thread, int n, String outcome) {
        Call c = call(thread, n);
        if (c.outcome.equals(outcome)) {
            fail(c.op + " of " + c.lock + " by " + thread + ", called at " + ms(c.from) + ", is " + said(c));
        }
    }

    private Call call(String thread, int n) {
        Worker w = worker(thread);
        if (w.calls.size() < n) {
            fail(thread + " made " + w.calls.size() + " calls, and not " + n);
        }
        return w.calls.get(n - 1);
    }

    private static String said(Call c) {
        return c.outcome.isEmpty() ? "under way" : c.outcome;
    }

    /** Fails if the server counts other levels for a thread than it took. */
    void assertCount(String lock, String thread) {
        Worker w = worker(thread);
        for (Sample s : samples.get(lock)) {
            if (w.inCall(lock, s.at) || s.at > w.client.died) {
                continue;
            }
            long levels = w.beliefs(lock).stream().filter(b -> b.from <= s.at && s.at <= b.to).count();
            boolean ending = w.beliefs(lock).stream().anyMatch(b -> Math.abs(s.at - b.to) < SLACK);
            if (!ending && s.holds.getOrDefault(w.owner, 0) > levels) {
                fail("at " + ms(s.at) + " the server counts " + s.holds.get(w.owner) + " for " + thread + " on " + lock + ", and its calls add up to " + levels);
            }
        }
    }

    /** Fails if a thread stands in the queue of the lock and does not wait. */
    void assertNoGhost(String lock, String thread) {
        Worker w = worker(thread);
        double since = -1;
        for (Sample s : samples.get(lock)) {
            boolean ghost = s.queue.contains(w.owner) && !w.inCall(lock, s.at) && s.at < w.client.died;
            since = !ghost ? -1 : since < 0 ? s.at : since;
            if (ghost && s.at - since > 300) {
                fail(thread + " stands in the queue of " + lock + " at " + ms(s.at) + ", and no call of it is under way since " + ms(since));
            }
        }
    }

    /** Fails if a waiter asks for the lock more than 20 times in a second beside once for each message. */
    void assertAsksSeldom(String lock, String thread) {
        Worker w = worker(thread);
        List<Double> asked = new ArrayList<>();
        for (Proxy.Sent m : w.client.proxy.sent) {
            if (m.role.equals("acquire") && m.words.contains(lock) && m.words.contains(w.owner)) {
                asked.add((m.at - begun) / 1e6);
            }
        }
        for (double from : asked) {
            long n = asked.stream().filter(at -> from <= at && at < from + 1000).count();
            long woken = w.client.proxy.pushed.stream().map(at -> (at - begun) / 1e6).filter(at -> from <= at && at < from + 1000).count();
            if (n > 20 + woken) {
                fail(thread + " asked for " + lock + " " + n + " times in the second from " + ms(from) + " on, and was woken " + woken + " times");
            }
        }
    }

    /** Fails if a client renews the lock more than three times in a period of its watchdog. */
    void assertRenewsSeldom(String lock, String client, double period) {
        List<Double> sent = new ArrayList<>();
        for (Proxy.Sent m : clients.get(client).proxy.sent) {
            if (m.role.equals("renew") && m.words.contains(lock)) {
                sent.add((m.at - begun) / 1e6);
            }
        }
        for (double from : sent) {
            long n = sent.stream().filter(at -> from <= at && at < from + period).count();
            if (n > 3) {
                fail(client + " renewed " + lock + " " + n + " times in " + ms(period) + " from " + ms(from) + " on");
            }
        }
    }
}
