package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An unlock that leaves levels gives the hold the lease of its lock object: the watchdog's, if it is another object or was released meanwhile. */
class RPartialUnlockLeaseTest {
    @RepeatedTest(3)
    void mutualExclusion() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            }).objectPerCall();
            Story.Client b = story.client("b", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 60000, lock -> lock.lock(60000, MILLISECONDS));
                t.lock("x", 60000, lock -> lock.lock(60000, MILLISECONDS));
                t.at(1000);
                t.unlock("x");
                t.sleep(14000);
            });
            story.thread("b/1", t -> {
                t.at(1500);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.play(14000, "x");
            story.assertOneOwner("x");
        }
    }
}
