package lockstep.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.api.RLock;

/**
 * Times the library's lock as bench/measure times others: ADDR WARMUP ROUNDS, where WARMUP -1 asks for hand-overs. It prints
 * a JSON array of nanoseconds.
 */
public final class Bench {
    private Bench() {}

    public static void main(String[] args) throws Exception {
        Shared shared = new Shared();
        RLock a = Settings.client(Map.of("address", args[0]), shared).getLock("java");
        int warmup = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        List<Long> took;
        if (warmup < 0) {
            // What is timed runs often enough in the pairs alone to be compiled by then.
            uncontended(a, 0, 3000);
            took = handOver(a, Settings.client(Map.of("address", args[0]), shared).getLock("java"), rounds);
        } else {
            took = uncontended(a, warmup, rounds);
        }
        System.out.println(took);
        System.exit(0);
    }

    private static List<Long> uncontended(RLock l, int warmup, int rounds) {
        List<Long> took = new ArrayList<>();
        for (int i = 0; i < warmup + rounds; i++) {
            long begun = System.nanoTime();
            l.lock();
            l.unlock();
            if (i >= warmup) {
                took.add(System.nanoTime() - begun);
            }
        }
        return took;
    }

    private static List<Long> handOver(RLock a, RLock b, int rounds) throws Exception {
        RLock[] locks = {a, b};
        ExecutorService[] threads = {Executors.newSingleThreadExecutor(), Executors.newSingleThreadExecutor()};
        List<Long> took = new ArrayList<>();
        threads[0].submit((Runnable) a::lock).get();
        for (int i = 0; i < rounds; i++) {
            RLock holder = locks[i % 2];
            RLock waiter = locks[(i + 1) % 2];
            CompletableFuture<Long> got = CompletableFuture.supplyAsync(() -> {
                waiter.lock();
                return System.nanoTime();
            }, threads[(i + 1) % 2]);
            Thread.sleep(5 + i * 7 % 10);
            long released = threads[i % 2].submit(() -> {
                long now = System.nanoTime();
                holder.unlock();
                return now;
            }).get();
            took.add(got.get() - released);
        }
        int last = rounds % 2;
        threads[last].submit((Runnable) locks[last]::unlock).get();
        return took;
    }
}
