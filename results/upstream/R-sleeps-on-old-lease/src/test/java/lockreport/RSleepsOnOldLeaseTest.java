package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** A waiter sleeps for the time to live of a hold that has ended early: an unlock wakes only one thread per client, and the end of a lease wakes nobody. */
class RSleepsOnOldLeaseTest {
    @RepeatedTest(3)
    void liveness() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {});
            Story.Client b = story.client("b", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 30000, lock -> lock.lock(30000, MILLISECONDS));
                t.at(1000);
                t.unlock("x");
            });
            story.thread("b/1", t -> {
                t.at(300);
                t.lock("x", 100, lock -> lock.lock(100, MILLISECONDS));
            });
            story.thread("b/2", t -> {
                t.at(300);
                t.lock("x", 100, lock -> lock.lock(100, MILLISECONDS));
            });
            story.play(6000, "x");
            story.assertFreeLockIsGiven("x", "b/2", 1000);
        }
    }
}
