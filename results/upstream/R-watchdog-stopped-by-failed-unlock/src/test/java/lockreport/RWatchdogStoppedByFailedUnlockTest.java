package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An unlock that failed stops the renewals although the hold stays (since 3.8.1). */
class RWatchdogStoppedByFailedUnlockTest {
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
                t.at(1000);
                t.unlock("x");
                t.unlock("x");
                t.sleep(20000);
            });
            story.rule(new Proxy.Rule().requests().script("unlock").nth(1).error("ERR injected"));
            story.play(14000, "x");
            story.assertHoldStays("x", "a/1");
        }
    }
}
