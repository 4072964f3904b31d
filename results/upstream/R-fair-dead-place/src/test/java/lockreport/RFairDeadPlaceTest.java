package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A dead waiter keeps its place for the time to live of the hold that it met, and its own wait, even if that hold was given up early. */
class RFairDeadPlaceTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setFairLockWaitTimeout(3000);
            });
            Story.Client b = story.client("b", (config, server) -> {
                config.setFairLockWaitTimeout(3000);
            });
            Story.Client c = story.client("c", (config, server) -> {
                config.setFairLockWaitTimeout(3000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(4000);
                t.unlock("x");
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.thread("c/1", t -> {
                t.at(2000);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.at(3000, () -> b.crash());
            story.play(15000, "x");
            story.assertFreeLockIsGiven("x", "c/1", 7000);
        }
    }
}
