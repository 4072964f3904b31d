package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A free fair lock can be unlocked by anyone (by design). */
class RFairFreeUnlockTest {
    @RepeatedTest(3)
    void linearizable() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
                t.at(2000);
                t.unlock("x");
            });
            story.play(6000, "x");
            story.assertCallIsNot("a/1", 2, "released");
        }
    }
}
