package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An acquire arrives after its lock() has ended with an error, and takes the turn and the place of the next call of its thread. */
class RFairLateTurnTest {
    @RepeatedTest(3)
    void fifo() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(0.2, 2);
            Story.Client b = story.client("b", (config, server) -> {});
            Story.Client c = story.client("c", (config, server) -> {});
            Story.Client d = story.client("d", (config, server) -> {});
            story.thread("b/1", t -> {
                t.tryLock("x", 0, lock -> lock.tryLock());
                t.at(4500);
                t.unlock("x");
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.thread("c/1", t -> {
                t.at(200);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.thread("d/1", t -> {
                t.at(400);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
                t.at(4100);
                t.lock("x", 0, lock -> lock.lock());
            });
            story.thread("d/2", t -> {
                t.at(3800);
                t.lock("y", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.rule(new Proxy.Rule().of("d").requests().script("acquire").nth(1).delay(6500));
            story.play(12000, "x", "y");
            story.assertOrder("x");
        }
    }
}
