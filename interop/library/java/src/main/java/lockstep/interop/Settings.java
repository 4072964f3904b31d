package lockstep.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A client's configuration from a command. Setters are looked up by name, because no release has them all; a setting that
 * the release lacks is an error, but for watchdog, which 3.4.2 has as a constant.
 *
 * <pre>
 * mode            single (default), master_replica, cluster
 * address         host:port of the server, of the master, or of the cluster's nodes (comma-separated)
 * replicas        host:port,... of a master's replicas
 * database        number
 * watchdog        lockWatchdogTimeout in ms
 * fair_wait       fairLockWaitTimeout in ms
 * response        response timeout in ms
 * retry_attempts  number
 * retry_delay     constant delay before a resend in ms
 * connections     size of the connection pool, default 4
 * idle            how many of them are kept open, default 1
 * </pre>
 */
final class Settings {
    private Settings() {}

    /** One at a time: 3.4.2 exchanges the JVM's factory of URL handlers meanwhile. */
    static synchronized RedissonClient client(Map<String, String> command, Shared shared) throws Exception {
        Config config = new Config();
        call(config, "setEventLoopGroup", shared.network);
        call(config, "setExecutor", shared.listeners);
        if (command.containsKey("watchdog") && has(config, "setLockWatchdogTimeout")) {
            call(config, "setLockWatchdogTimeout", Long.valueOf(command.get("watchdog")));
        }
        if (command.containsKey("fair_wait")) {
            call(config, "setFairLockWaitTimeout", Long.valueOf(command.get("fair_wait")));
        }
        server(config, command);
        return Redisson.create(config);
    }

    private static void server(Config config, Map<String, String> command) throws Exception {
        String[] addresses = Driver.need(command, "address").split(",");
        Integer connections = Integer.valueOf(command.getOrDefault("connections", "4"));
        Integer idle = Integer.valueOf(command.getOrDefault("idle", "1"));
        Object server;
        switch (command.getOrDefault("mode", "single")) {
            case "single":
                server = config.useSingleServer();
                call(server, "setAddress", scheme() + addresses[0]);
                call(server, "setConnectionMinimumIdleSize", idle);
                call(server, "setConnectionPoolSize", connections);
                break;
            case "master_replica":
                server = config.useMasterSlaveServers();
                call(server, "setMasterAddress", scheme() + addresses[0]);
                for (String replica : command.getOrDefault("replicas", "").split(",")) {
                    if (!replica.isEmpty()) {
                        call(server, "addSlaveAddress", new Object[] {new String[] {scheme() + replica}});
                    }
                }
                pools(server, connections, idle);
                break;
            case "cluster":
                server = config.useClusterServers();
                for (String node : addresses) {
                    call(server, "addNodeAddress", new Object[] {new String[] {scheme() + node}});
                }
                pools(server, connections, idle);
                break;
            default:
                throw new IllegalArgumentException("unknown mode " + command.get("mode"));
        }
        call(server, "setSubscriptionConnectionMinimumIdleSize", 1);
        set(server, command, "database", "setDatabase");
        set(server, command, "response", "setTimeout");
        set(server, command, "retry_attempts", "setRetryAttempts");
        if (command.containsKey("retry_delay")) {
            int millis = Integer.parseInt(command.get("retry_delay"));
            if (has(server, "setRetryDelay")) {
                Object delay = Class.forName("org.redisson.config.ConstantDelay")
                        .getConstructor(Duration.class).newInstance(Duration.ofMillis(millis));
                call(server, "setRetryDelay", delay);
            } else {
                call(server, "setRetryInterval", millis);
            }
        }
    }

    private static String scheme() {
        try {
            Class.forName("org.redisson.misc.URLBuilder"); // 3.4.2 puts one in front by itself
            return "";
        } catch (ClassNotFoundException e) {
            return "redis://";
        }
    }

    private static void pools(Object server, Integer connections, Integer idle) throws Exception {
        for (String of : new String[] {"Master", "Slave"}) {
            call(server, "set" + of + "ConnectionMinimumIdleSize", idle);
            call(server, "set" + of + "ConnectionPoolSize", connections);
        }
    }

    private static void set(Object target, Map<String, String> command, String key, String setter) throws Exception {
        if (command.containsKey(key)) {
            call(target, setter, Integer.valueOf(command.get(key)));
        }
    }

    private static boolean has(Object target, String setter) {
        for (Method m : target.getClass().getMethods()) {
            if (m.getName().equals(setter)) {
                return true;
            }
        }
        return false;
    }

    private static void call(Object target, String setter, Object... args) throws Exception {
        for (Method m : target.getClass().getMethods()) {
            if (!m.getName().equals(setter) || m.getParameterCount() != 1) {
                continue;
            }
            try {
                m.setAccessible(true); // of a class that is not public
                m.invoke(target, args);
                return;
            } catch (IllegalArgumentException e) {
                // another overload
            } catch (InvocationTargetException e) {
                throw new IllegalArgumentException(setter + ": " + e.getCause(), e.getCause());
            }
        }
        throw new IllegalArgumentException("this release has no " + setter);
    }
}
