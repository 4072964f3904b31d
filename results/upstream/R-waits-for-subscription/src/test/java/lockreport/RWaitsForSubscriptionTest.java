package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter does not ask for the lock until its subscription is confirmed, even if the lock is free. */
class RWaitsForSubscriptionTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client d = story.client("d", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 0, lock -> lock.lock());
                t.at(1500);
                t.unlock("x");
            });
            story.thread("d/1", t -> {
                t.at(1000);
                t.tryLock("x", 0, lock -> lock.tryLock(20000, MILLISECONDS));
            });
            story.rule(new Proxy.Rule().of("d").requests().command("SUBSCRIBE").until(15000).hold());
            story.play(7000, "x");
            story.assertFreeLockIsGiven("x", "d/1", 1000);
        }
    }
}
