package lockstep.interop;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;

/** The threads that all clients share, so that one more client costs little. */
final class Shared {
    final EventLoopGroup network = new NioEventLoopGroup(2, daemons("network"));
    final ExecutorService listeners = Executors.newFixedThreadPool(16, daemons("listener"));

    static ThreadFactory daemons(String name) {
        return r -> {
            Thread t = new Thread(r, name);
            t.setDaemon(true);
            return t;
        };
    }
}
