package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter that was thrown out and queues again is told the deadline of the waiter before it, and sleeps past the end of the hold. */
class RFairToldNeighboursDeadlineTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {
                config.setFairLockWaitTimeout(1000);
            });
            Story.Client c = story.client("c", (config, server) -> {
                config.setFairLockWaitTimeout(60000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 10000, lock -> lock.lock(10000, MILLISECONDS));
                t.at(9000);
                t.lock("x", 10000, lock -> lock.lock(10000, MILLISECONDS));
                t.at(18000);
                t.lock("x", 10000, lock -> lock.lock(10000, MILLISECONDS));
                t.at(20000);
                for (int i = 0; i < 3; i++) {
                    t.unlock("x");
                }
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.thread("c/1", t -> {
                t.at(12000);
                t.lock("x", 500, lock -> lock.lock(500, MILLISECONDS));
            });
            story.play(26000, "x");
            story.assertFreeLockIsGiven("x", "b/1", 1000);
        }
    }
}
