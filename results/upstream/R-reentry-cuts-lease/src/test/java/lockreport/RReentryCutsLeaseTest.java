package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A re-entry with a lease gives the whole hold that lease, and a level without a lease ends with it. */
class RReentryCutsLeaseTest {
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
                t.lock("x", 0, lock -> lock.lock());
                t.lock("x", 1500, lock -> lock.lock(1500, MILLISECONDS));
                t.at(500);
                t.unlock("x");
                t.sleep(5000);
            });
            story.thread("b/1", t -> {
                t.at(200);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.play(6000, "x");
            story.assertOneOwner("x");
        }
    }
}
