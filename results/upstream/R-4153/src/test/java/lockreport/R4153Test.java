package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter without a score is never thrown out of the queue (4153, 5989). */
class R4153Test {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            Story.Client c = story.client("c", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("orders", 0, lock -> lock.lock());
                t.at(42000);
                t.unlock("orders");
                t.at(70000);
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.lock("orders", 10000, lock -> lock.lock(10000, MILLISECONDS));
                t.unlock("orders");
            });
            story.thread("c/1", t -> {
                t.at(12000);
                t.lock("orders", 10000, lock -> lock.lockInterruptibly(10000, MILLISECONDS));
                t.unlock("orders");
            });
            story.thread("c/2", t -> {
                t.at(45000);
                story.interrupt("c/1");
            });
            story.at(5000, () -> story.delete("redisson_lock_timeout:*"));
            story.play(47000, "orders");
            story.assertFreeLockIsGiven("orders", "c/1", 1001);
        }
    }
}
