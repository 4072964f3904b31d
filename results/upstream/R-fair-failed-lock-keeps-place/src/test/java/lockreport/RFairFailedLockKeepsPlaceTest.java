package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A lock() that ends with an error keeps its place in the queue, and its thread comes back to it (acquireFailed is not called). */
class RFairFailedLockKeepsPlaceTest {
    @RepeatedTest(3)
    void tidy() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 60000, lock -> lock.lock(60000, MILLISECONDS));
                t.at(6000);
                t.unlock("x");
            });
            story.thread("a/2", t -> {
                t.at(2000);
                story.interrupt("b/1");
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.lock("x", 0, lock -> lock.lockInterruptibly());
            });
            story.play(6000, "x");
            story.assertNoGhost("x", "b/1");
        }
    }
}
