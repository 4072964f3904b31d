package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A force_unlock that is sent again also ends the next owner's hold, or answers that there was no hold. */
class RForceUnlockResendTest {
    @RepeatedTest(3)
    void linearizable() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {
                server.setTimeout(1000);
            });
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.forceUnlock("x");
            });
            story.rule(new Proxy.Rule().replies().script("force_unlock").nth(1).reset());
            story.play(5000, "x");
            story.assertCallIsNot("b/1", 1, "free");
        }
    }
}
