package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter sleeps on the time to live of a hold that was given up (scenario fair-sleeps-on-an-old-lease). */
class RFairSleepsOnOldLeaseTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getFairLock)) {
            story.latency(10, 10);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            Story.Client c = story.client("c", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 20000, lock -> lock.lock(20000, MILLISECONDS));
                t.at(5500);
                t.unlock("x");
            });
            story.thread("b/1", t -> {
                t.at(5000);
                t.tryLock("x", 0, lock -> lock.tryLock(0, MILLISECONDS));
            });
            story.thread("c/1", t -> {
                t.at(5200);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
                t.unlock("x");
            });
            story.rule(new Proxy.Rule().of("b").requests().script("leave").delay(1000));
            story.play(18000, "x");
            story.assertFreeLockIsGiven("x", "c/1", 8510);
        }
    }
}
