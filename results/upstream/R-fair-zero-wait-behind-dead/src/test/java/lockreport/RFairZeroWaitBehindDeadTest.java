package lockreport;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** Behind a dead waiter of a free lock the next waiter is told to wait 0 ms, and asks again at once, until the dead one's deadline (since 3.32.0). */
class RFairZeroWaitBehindDeadTest {
    @RepeatedTest(3)
    void traffic() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client b = story.client("b", (config, server) -> {
                config.setFairLockWaitTimeout(5000);
            });
            Story.Client d = story.client("d", (config, server) -> {
                config.setFairLockWaitTimeout(5000);
            });
            story.thread("b/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(1000);
                t.unlock("x");
                t.at(1100);
                t.lock("x", 0, lock -> lock.lock());
                t.unlock("x");
            });
            story.thread("d/1", t -> {
                t.at(300);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.at(700, () -> d.crash());
            story.play(5000, "x");
            story.assertAsksSeldom("x", "b/1");
        }
    }
}
