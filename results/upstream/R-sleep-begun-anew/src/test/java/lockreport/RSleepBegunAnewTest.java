package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An interrupt of an uninterruptible lock() makes it start its sleep again, past the end of the hold. */
class RSleepBegunAnewTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            Story.Client c = story.client("c", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 10000, lock -> lock.lock(10000, MILLISECONDS));
            });
            story.thread("a/2", t -> {
                t.at(8000);
                story.interrupt("b/1");
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.thread("c/1", t -> {
                t.at(2000);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.play(15000, "x");
            story.assertFreeLockIsGiven("x", "c/1", 1000);
        }
    }
}
