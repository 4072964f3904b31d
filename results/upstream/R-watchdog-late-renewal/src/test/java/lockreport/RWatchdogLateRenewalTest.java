package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A renewal that was lost, late, unable to leave, or waiting for replicas reaches the server after the unlock. */
class RWatchdogLateRenewalTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
                server.setTimeout(1000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(3500);
                t.unlock("x");
            });
            story.rule(new Proxy.Rule().requests().script("renew").nth(1).drop());
            story.play(9000, "x");
            story.assertNoRenewalAfterUnlock("x", "a/1");
        }
    }
}
