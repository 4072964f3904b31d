package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter with a deadline but without a place is not queued again, and no unlock wakes it. */
class RFairUnplacedTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            Story.Client b = story.client("b", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(12000);
                t.unlock("x");
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.at(3000, () -> story.delete("redisson_lock_queue:{x}"));
            story.play(17000, "x");
            story.assertFreeLockIsGiven("x", "b/1", 1001);
        }
    }
}
