// The C++ layer: owners move, failures throw with status and message, nothing is freed twice.
#include <dlhal/dlhal.hpp>
#include <utility>
#include <vector>

#include "check.h"

static std::string data(const char *name) {
    const char *folder = getenv("DLHAL_TEST_DATA");
    return std::string(folder ? folder : "tests/data") + "/modules/" + name;
}

static const DLDataType f32 = {kDLFloat, 32, 1};

static void kernels_run() {
    dlhal::Module module = dlhal::Module::load(data("v0.6.1/demo.vulkan"));
    CHECK_INT(module.function_names().size(), 3);
    dlhal::Function saxpy = module.function("saxpy");
    CHECK_INT(saxpy.info().num_launch_args, 6);
    dlhal::Stream stream(dlhal::device());
    dlhal::Tensor x(dlhal::device(), f32, {8, 8}), y(dlhal::device(), f32, {64});
    std::vector<float> ones(64, 1), got(64);
    CHECK_INT(x.nbytes(), 256);
    x.upload(ones.data());
    y.upload(ones.data());
    saxpy.launch(stream,
                 {x.arg(), y.arg(), dlhal_float(2), dlhal_int(64), dlhal_int(1), dlhal_int(64)});
    dlhal::Event event(dlhal::device());
    event.record(stream);
    event.synchronize();
    CHECK(event.done() && event.wait_for(std::chrono::nanoseconds(0)));
    dlhal::Timer timer(dlhal::device());
    timer.start(stream);
    timer.stop(stream);
    CHECK(timer.elapsed() == timer.elapsed() && timer.elapsed().count() >= 0);
    dlhal::start_profile(dlhal::device());
    dlhal::stop_profile(dlhal::device());
    dlhal::save_profile(dlhal::device(), "/dev/null");
    y.download(got.data());
    CHECK(got[0] == 3 && got[63] == 3);
    dlhal::Module again = dlhal::Module::from_bytes(module.bytes().data(), module.bytes().size());
    CHECK(again.bytes() == module.bytes());
}

static void owners_move() {
    dlhal::Stream a(dlhal::device()), b(std::move(a)), c;
    CHECK(a.get() == nullptr && b.get() != nullptr);
    c = std::move(b);
    CHECK(b.get() == nullptr && c.get() != nullptr);
    c.synchronize();
    dlhal::Tensor t(dlhal::device(), f32, {4}), u(std::move(t)), v;
    v = std::move(u);
    CHECK(!t && !u && v);
    dlhal::Module m = dlhal::Module::load(data("v0.6.1/demo.vulkan")), n;
    n = std::move(m);
    CHECK(!m && n);
    DLManagedTensorVersioned *handed_out = v.release();
    CHECK(!v);
    handed_out->deleter(handed_out);
}

static void failures_throw() {
    try {
        dlhal::Module::load("/nowhere/module.vulkan");
        CHECK(!"nothing was thrown");
    } catch (const dlhal::Error &error) {
        CHECK(error.status() == DLHAL_STATUS_NOT_FOUND || error.status() == DLHAL_STATUS_IO);
        CHECK_CONTAINS(error.what(), "/nowhere/module.vulkan");
    }
    try {
        dlhal::Stream stream(dlhal::device(99));
        CHECK(!"nothing was thrown");
    } catch (const dlhal::Error &error) {
        CHECK_INT(error.status(), DLHAL_STATUS_NOT_FOUND);
    }
}

int main() {
    REQUIRE(dlhal::device_count() > 0);
    kernels_run();
    owners_move();
    failures_throw();
    CHECK(!dlhal::diagnose().empty());
    CHECK(!dlhal::attribute(dlhal::device(), DLHAL_DEVICE_ATTR_DEVICE_NAME).empty());
    dlhal::synchronize(dlhal::device());
    return check_finish();
}
