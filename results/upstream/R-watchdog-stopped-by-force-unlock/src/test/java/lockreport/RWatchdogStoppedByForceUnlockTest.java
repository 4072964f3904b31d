package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A force_unlock ends the renewals of its own client's hold before it is sent, and if it fails the hold stays without renewals. */
class RWatchdogStoppedByForceUnlockTest {
    @RepeatedTest(3)
    void lease() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
                server.setTimeout(1000);
                server.setRetryAttempts(0);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.sleep(20000);
            });
            story.thread("a/2", t -> {
                t.at(1000);
                t.forceUnlock("x");
            });
            story.rule(new Proxy.Rule().requests().script("force_unlock").drop());
            story.play(13000, "x");
            story.assertHoldStays("x", "a/1");
        }
    }
}
