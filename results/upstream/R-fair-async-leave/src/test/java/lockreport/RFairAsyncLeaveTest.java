package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An asynchronous try that gives up takes 300 000 ms off the deadlines behind it, whatever its own wait was. */
class RFairAsyncLeaveTest {
    @RepeatedTest(3)
    void fifo() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            Story.Client c = story.client("c", (config, server) -> {});
            Story.Client d = story.client("d", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 60000, lock -> lock.lock(60000, MILLISECONDS));
                t.at(5000);
                t.unlock("x");
            });
            // B gives up after 1.5 s, and C stands behind it.
            story.thread("b/1", t -> {
                t.at(500);
                t.tryLock("x", 60000, lock -> lock.tryLockAsync(1500, 60000, MILLISECONDS).get());
            });
            story.thread("c/1", t -> {
                t.at(1000);
                t.tryLock("x", 1000, lock -> lock.tryLock(20000, 1000, MILLISECONDS));
            });
            // D looks at the queue, and C is thrown out of it.
            story.thread("d/1", t -> {
                t.at(3500);
                t.tryLock("x", 1000, lock -> lock.tryLock(20000, 1000, MILLISECONDS));
            });
            story.play(9000, "x");
            story.assertOrder("x");
        }
    }
}
