package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A client that locks and unlocks often has many timers that renew its next hold. */
class RWatchdogMultipliesTest {
    @RepeatedTest(TRIES)
    void renewals() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            Story.Client a = story.client("a", (config, server) -> config.setLockWatchdogTimeout(6000));
            story.thread("a/1", t -> {
                for (int i = 0; i < 20; i++) {
                    t.lock("x", 0, lock -> lock.lock());
                    t.unlock("x");
                }
                t.lock("x", 0, lock -> lock.lock());
                t.at(15000);
                t.unlock("x");
            });
            story.play(15500, "x");
            story.assertRenewsSeldom("x", "a", 2000);
        }
    }
}
