package lockstep.interop;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** The synchronous methods of a lock, by the names that commands have for them. */
final class Calls {
    private Calls() {}

    /**
     * Calls the method. wait and lease are numbers in the command's unit (a TimeUnit, milliseconds unless named); without
     * them it is the overload that has none.
     */
    static Object run(Member member, Map<String, String> command) throws Exception {
        RLock lock = member.lock(command);
        TimeUnit unit = TimeUnit.valueOf(command.getOrDefault("unit", "MILLISECONDS"));
        Long lease = number(command, "lease");
        Long wait = number(command, "wait");
        switch (Driver.need(command, "op")) {
            case "lock":
                if (lease == null) {
                    lock.lock();
                } else {
                    lock.lock(lease, unit);
                }
                return "ok";
            case "lock_interruptibly":
                if (lease == null) {
                    lock.lockInterruptibly();
                } else {
                    lock.lockInterruptibly(lease, unit);
                }
                return "ok";
            case "try_lock":
                if (wait == null) {
                    return lock.tryLock();
                }
                return lease == null ? lock.tryLock(wait, unit) : lock.tryLock(wait, lease, unit);
            case "unlock":
                lock.unlock();
                return "ok";
            case "force_unlock":
                return with(lock, "forceUnlock"); // void in 3.4.2
            case "is_locked":
                return lock.isLocked();
            case "is_held":
                return lock.isHeldByCurrentThread();
            case "hold_count":
                return lock.getHoldCount();
            case "remain_ttl":
                return lock.remainTimeToLive();
            case "delete":
                return lock.getClass().getMethod("delete").invoke(lock);
            case "lock_and_get_token":
            case "get_token":
                return with(lock, "get_token".equals(command.get("op")) ? "getToken" : "lockAndGetToken");
            case "try_lock_and_get_token":
                if (wait == null) {
                    return with(lock, "tryLockAndGetToken");
                }
                return lease == null
                        ? with(lock, "tryLockAndGetToken", wait, unit)
                        : with(lock, "tryLockAndGetToken", wait, lease, unit);
            case "forget":
                member.forget(command.get("kind"), command.get("lock"));
                return "ok";
            default:
                throw new IllegalArgumentException("unknown operation " + command.get("op"));
        }
    }

    /** A method of times and a unit that not all releases have, or have with another result. */
    private static Object with(RLock lock, String method, Object... arguments) throws Exception {
        Class<?>[] types = new Class<?>[arguments.length];
        for (int i = 0; i < types.length; i++) {
            types[i] = arguments[i] instanceof Long ? long.class : TimeUnit.class;
        }
        try {
            java.lang.reflect.Method called = lock.getClass().getMethod(method, types);
            Object result = called.invoke(lock, arguments);
            return called.getReturnType() == void.class ? "ok" : result;
        } catch (java.lang.reflect.InvocationTargetException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw e;
        }
    }

    private static Long number(Map<String, String> command, String key) {
        String v = command.get(key);
        return v == null ? null : Long.valueOf(v);
    }
}
