package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** The next renewal waits for the answer to the last one, so a lost renewal costs the response timeout, which may exceed a short watchdog timeout. */
class RWatchdogOneAtATimeTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(5000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.sleep(15000);
            });
            story.rule(new Proxy.Rule().requests().script("renew").nth(1).drop());
            story.play(9000, "x");
            story.assertHoldStays("x", "a/1");
        }
    }
}
