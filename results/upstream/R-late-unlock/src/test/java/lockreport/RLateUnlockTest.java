package lockreport;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.junit.jupiter.api.RepeatedTest;
import org.redisson.api.RedissonClient;

/** An unlock of unknown outcome arrives late and takes a level of a later hold of its thread (an owner is client and thread, not one acquisition). */
class RLateUnlockTest {
    @RepeatedTest(3)
    void mutualExclusion() throws Exception {
        try (Story story = new Story(RedissonClient::getLock)) {
            story.latency(0.2, 2);
            Story.Client a = story.client("a", (config, server) -> {
                server.setTimeout(1000);
                server.setRetryAttempts(0);
            });
            Story.Client b = story.client("b", (config, server) -> {});
            story.thread("a/1", t -> {
                t.lock("x", 4000, lock -> lock.lock(4000, MILLISECONDS));
                t.at(1000);
                t.unlock("x");
                t.at(5000);
                t.lock("x", 30000, lock -> lock.lock(30000, MILLISECONDS));
                t.sleep(6000);
            });
            story.thread("a/2", t -> {
                t.at(4500);
                t.lock("y", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.thread("b/1", t -> {
                t.at(9000);
                t.lock("x", 1000, lock -> lock.lock(1000, MILLISECONDS));
            });
            story.rule(new Proxy.Rule().of("a").requests().script("unlock").nth(1).delay(6000));
            story.play(13000, "x", "y");
            story.assertOneOwner("x");
        }
    }
}
