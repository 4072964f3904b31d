package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An unlock of a level with a lease takes a level from the watchdog, which then no longer renews the levels without a lease. */
class RWatchdogLeasedLevelTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.lock("x", 10000, lock -> lock.lock(10000, MILLISECONDS));
                t.at(1000);
                t.unlock("x");
                t.sleep(25000);
            });
            story.play(15000, "x");
            story.assertHoldStays("x", "a/1");
        }
    }
}
