package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** The watchdog asks only for the first thread of a client: if others ended that thread's hold, the next thread's hold is not renewed. */
class RWatchdogFirstThreadTest {
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
                t.lock("x", 0, lock -> lock.lock());
                t.lock("x", 0, lock -> lock.lock());
            });
            story.thread("a/2", t -> {
                t.at(2000);
                t.lock("x", 0, lock -> lock.lock());
                t.sleep(25000);
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.forceUnlock("x");
            });
            story.play(15000, "x");
            story.assertHoldStays("x", "a/2");
        }
    }
}
