package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A hold that others ended leaves its levels with the watchdog, which renews the thread's next hold, whatever its lease, even after it is given up. */
class RWatchdogLevelsLeftTest {
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
                t.lock("x", 0, lock -> lock.lock());
                t.at(2000);
                t.lock("x", 5000, lock -> lock.lock(5000, MILLISECONDS));
                t.at(12000);
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.forceUnlock("x");
            });
            story.play(7000, "x");
            story.assertLeaseIsNotLonger("x", "a/1", 9000);
        }
    }
}
