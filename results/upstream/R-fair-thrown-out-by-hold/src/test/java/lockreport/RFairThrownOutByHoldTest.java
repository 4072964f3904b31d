package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter sleeps past its own deadline, because the hold lasts longer than the wait of its place, and is thrown out of the queue. */
class RFairThrownOutByHoldTest {
    @RepeatedTest(3)
    void fifo() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(20, 20);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {
                config.setFairLockWaitTimeout(1000);
            });
            Story.Client c = story.client("c", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 2000, lock -> lock.lock(2000, MILLISECONDS));
                t.at(1800);
                t.lock("x", 3000, lock -> lock.lock(3000, MILLISECONDS));
            });
            story.thread("b/1", t -> {
                t.at(200);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.thread("c/1", t -> {
                t.at(4000);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.play(9000, "x");
            story.assertOrder("x");
        }
    }
}
