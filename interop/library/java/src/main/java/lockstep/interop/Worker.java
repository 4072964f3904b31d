package lockstep.interop;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/** One logical thread: a real thread of its own, whose id is half of the owner that the library writes. */
final class Worker {
    private static final long LATCH_LIMIT_MILLIS = 2000;

    private final LinkedBlockingQueue<Runnable> calls = new LinkedBlockingQueue<>();
    private final AtomicLong ended = new AtomicLong();
    private final Thread thread;
    private volatile boolean over;

    Worker(String name) {
        thread = Shared.daemons(name).newThread(() -> {
            while (!over) {
                Runnable call;
                try {
                    call = calls.take();
                } catch (InterruptedException e) {
                    continue; // came after its call had ended
                }
                call.run();
                ended.incrementAndGet();
            }
        });
        thread.start();
    }

    /** Ends the thread once it is in no call. */
    void end() {
        execute(() -> over = true);
    }

    void execute(Runnable call) {
        calls.add(call);
    }

    Thread thread() {
        return thread;
    }

    /** Whether its call waits for a message: once it does, or after a while in which it did not come to that. */
    boolean waits() throws InterruptedException {
        long end = System.nanoTime() + LATCH_LIMIT_MILLIS * 1_000_000;
        while (System.nanoTime() < end) {
            if (waitsAtLatch()) {
                return true;
            }
            Thread.sleep(1);
        }
        return false;
    }

    /**
     * Interrupts the thread, at once or when it has come to wait for a message: an interrupt during a round trip has another
     * effect. Says, of the latter, whether the call ended or waits again.
     */
    String interrupt(boolean now) throws InterruptedException {
        long end = System.nanoTime() + LATCH_LIMIT_MILLIS * 1_000_000;
        while (!now && !waitsAtLatch()) {
            if (System.nanoTime() > end) {
                return "not waiting";
            }
            Thread.sleep(1);
        }
        long before = ended.get();
        thread.interrupt();
        while (!now && System.nanoTime() < end) {
            if (ended.get() != before) {
                return "ended";
            }
            if (!thread.isInterrupted() && waitsAtLatch()) { // in this order: the mark goes before it waits again
                return "waits";
            }
            Thread.sleep(1);
        }
        return "ok";
    }

    private boolean waitsAtLatch() {
        Thread.State state = thread.getState();
        if (state != Thread.State.WAITING && state != Thread.State.TIMED_WAITING) {
            return false;
        }
        for (StackTraceElement frame : thread.getStackTrace()) {
            if (frame.getClassName().equals(Semaphore.class.getName())) {
                return true;
            }
        }
        return false;
    }
}
