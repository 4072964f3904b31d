package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** The late answer of a renewal that found no hold ends the renewals of the thread's new hold. */
class RWatchdogStoppedByOldAnswerTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(3500);
                t.unlock("x");
                t.at(4500);
                t.lock("x", 0, lock -> lock.lock());
                t.sleep(20000);
            });
            story.rule(new Proxy.Rule().requests().script("renew").nth(1).delay(1000));
            story.rule(new Proxy.Rule().replies().script("renew").nth(1).delay(1000));
            story.play(18000, "x");
            story.assertHoldStays("x", "a/1");
        }
    }
}
