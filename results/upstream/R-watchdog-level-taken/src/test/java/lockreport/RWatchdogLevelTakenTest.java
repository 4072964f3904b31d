package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An unlock that found no hold takes one level from the watchdog, which goes on renewing a lock that was entered more than once. */
class RWatchdogLevelTakenTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.lock("x", 0, lock -> lock.lock());
                t.lock("x", 500, lock -> lock.lock(500, MILLISECONDS));
                t.at(1000);
                t.unlock("x");
                t.sleep(25000);
            });
            story.play(7000, "x");
            story.assertNoRenewalAfterUnlock("x", "a/1");
        }
    }
}
