package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An interrupted unlock is still under way, and the renewals go on until it is answered. */
class RWatchdogUntilAnswerTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(3000);
            });
            Story.Client b = story.client("b", (config, server) -> {
                config.setLockWatchdogTimeout(3000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(2000);
                t.unlock("x");
            });
            story.thread("b/1", t -> {
                t.at(2100);
                story.interrupt("a/1");
            });
            story.rule(new Proxy.Rule().requests().script("unlock").nth(1).drop());
            story.play(7000, "x");
            story.assertNoRenewalAfterUnlock("x", "a/1");
        }
    }
}
