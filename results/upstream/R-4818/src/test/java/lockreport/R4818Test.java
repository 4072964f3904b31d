package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A hold without a lease starts with the last lease of its lock object, and may end before the first renewal (4818). */
class R4818Test {
    @RepeatedTest(3)
    void mutualExclusion() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            Story.Client b = story.client("b", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.tryLock("x", 500, lock -> lock.tryLock(0, 500, MILLISECONDS));
                t.at(1000);
                t.tryLock("x", 0, lock -> lock.tryLock());
                t.sleep(5000);
            });
            story.thread("b/1", t -> {
                t.at(2000);
                t.tryLock("x", 0, lock -> lock.tryLock());
            });
            story.play(6000, "x");
            story.assertOneOwner("x");
        }
    }
}
