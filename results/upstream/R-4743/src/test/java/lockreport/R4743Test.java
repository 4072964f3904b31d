package lockreport;

import static java.util.concurrent.TimeUnit.SECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A tryLock in seconds without a lease is queued for as many milliseconds (4743). */
class R4743Test {
    @RepeatedTest(3)
    void fifo() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            Story.Client b = story.client("b", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            Story.Client c = story.client("c", (config, server) -> {
                config.setLockWatchdogTimeout(9000);
            });
            story.thread("a/1", t -> {
                t.lock("orders", 0, lock -> lock.lock());
                t.at(10000);
                t.unlock("orders");
            });
            story.thread("b/1", t -> {
                t.at(1000);
                t.tryLock("orders", 0, lock -> lock.tryLock(10, SECONDS));
                t.unlock("orders");
            });
            story.thread("c/1", t -> {
                t.at(2000);
                t.lock("orders", 0, lock -> lock.lock());
                t.unlock("orders");
            });
            story.play(14000, "orders");
            story.assertOrder("orders");
        }
    }
}
