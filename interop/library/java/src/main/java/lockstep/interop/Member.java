package lockstep.interop;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** One client of the library with its threads and its shared lock objects. */
final class Member {
    private final RedissonClient client;
    private final String uuid;
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();
    private final Map<String, RLock> objects = new ConcurrentHashMap<>();

    Member(RedissonClient client) throws Exception {
        this.client = client;
        this.uuid = uuidOf(client);
    }

    String uuid() {
        return uuid;
    }

    Worker worker(String name) {
        return workers.computeIfAbsent(name, Worker::new);
    }

    /** The lock object of that kind and name: the client's own, or a new one (object=fresh), as getLock gives at each call. */
    RLock lock(Map<String, String> command) throws Exception {
        String kind = Driver.need(command, "kind");
        String name = Driver.need(command, "lock");
        if ("fresh".equals(command.get("object"))) {
            return make(kind, name);
        }
        RLock known = objects.get(kind + " " + name);
        if (known != null) {
            return known;
        }
        RLock made = make(kind, name);
        RLock before = objects.putIfAbsent(kind + " " + name, made);
        return before == null ? made : before;
    }

    void forget(String kind, String name) {
        objects.remove(kind + " " + name);
    }

    private RLock make(String kind, String name) throws Exception {
        switch (kind) {
            case "plain":
                return client.getLock(name);
            case "fair":
                return client.getFairLock(name);
            case "fenced":
                return newer("getFencedLock", name);
            case "nonreentrant":
                return newer("getNonReentrantLock", name);
            case "nonreentrant_fair":
                return newer("getNonReentrantFairLock", name);
            default:
                throw new IllegalArgumentException("unknown kind of lock " + kind);
        }
    }

    /** A kind of lock that not all releases have. */
    private RLock newer(String method, String name) throws Exception {
        return (RLock) RedissonClient.class.getMethod(method, String.class).invoke(client, name);
    }

    long watchdogMillis() throws Exception {
        try {
            Method get = client.getConfig().getClass().getMethod("getLockWatchdogTimeout");
            return ((Number) get.invoke(client.getConfig())).longValue();
        } catch (NoSuchMethodException e) {
            return 30_000; // 3.4.2: not a setting yet
        }
    }

    void close() {
        workers.values().forEach(Worker::end);
        client.shutdown();
    }

    /** The client's id, which has had three places. */
    private static String uuidOf(RedissonClient client) throws Exception {
        try {
            return (String) RedissonClient.class.getMethod("getId").invoke(client);
        } catch (NoSuchMethodException e) {
            // older
        }
        try {
            return field(client, "id").toString(); // 3.4.2
        } catch (NoSuchFieldException e) {
            Object manager = field(client, "connectionManager"); // 3.11.0, 3.12.4
            Method id = manager.getClass().getMethod("getId");
            id.setAccessible(true);
            return id.invoke(manager).toString();
        }
    }

    private static Object field(RedissonClient client, String name) throws Exception {
        Field f = Redisson.class.getDeclaredField(name);
        f.setAccessible(true);
        return f.get(client);
    }
}
