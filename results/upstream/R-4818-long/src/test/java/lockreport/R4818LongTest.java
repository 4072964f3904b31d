package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An attempt without a lease takes the last lease of its lock object, even if it is longer than the watchdog's (4818). */
class R4818LongTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            Story.Client b = story.client("b", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 60000, lock -> lock.lock(60000, MILLISECONDS));
                t.at(1000);
                t.tryLock("x", 0, lock -> lock.tryLock());
                t.at(2000);
            });
            story.thread("b/1", t -> {
                t.at(500);
                t.forceUnlock("x");
            });
            story.play(5000, "x");
            story.assertLeaseIsNotLonger("x", "a/1", 9000);
        }
    }
}
