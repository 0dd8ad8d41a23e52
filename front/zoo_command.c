/* Owns the options of ceiling-scout zoo. */
#include "common/files.h"
#include "common/version.h"
#include "front/zoo.h"

#include <string.h>

#define AT(member) offsetof(zoo, member)

/* It is a folder's name, too. */
static bool set_night(void *destination, const char *argument, status *st) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
    const size_t n = strlen(argument);
    ((zoo *)destination)->named = argument;
    if (n > 0 && n <= 80 && argument[0] != '.' && argument[0] != '-' && strspn(argument, all) == n) return true;
    return status_fail(st, STATUS_USAGE,
                       "--night: letters, digits and ._:- alone, at most 80, and a letter or digit first");
}

static const cli_option rows[] = {
    {.name = "list",
     .kind = CLI_FLAG,
     .offset = AT(list),
     .help = "print the models, sizes and results, and do nothing"},
    {.name = "only",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(only),
     .help = "only this model, or only this folder of one"},
    {.name = "budget",
     .argument = "TIME",
     .kind = CLI_SECONDS,
     .min = 1,
     .max = 10000000,
     .offset = AT(budget),
     .help = "time limit of measuring each model at each size (90, 90s, 2m, 1h), instead of the list's"},
    {.name = "again",
     .kind = CLI_FLAG,
     .offset = AT(again),
     .help = "measure all of it in this night, its ceilings too; without it only what has changed"},
    {.name = "gpus",
     .argument = "LIST",
     .kind = CLI_TEXT,
     .offset = AT(gpus),
     .help =
         "measure on these GPUs beside each other, a model at a size on each: all, or as CUDA_VISIBLE_DEVICES names "
         "them (0,1)"},
    {.name = "part",
     .argument = "N/M",
     .kind = CLI_TEXT,
     .offset = AT(part),
     .help = "measure the Nth of the M lines of --list alone, while other processes or machines measure the others"},
    {.name = "night",
     .argument = "NAME",
     .kind = CLI_CALL,
     .call = set_night,
     .help = "what the night of --part and --tell is called; all of it is measured anew"},
    {.name = "tell",
     .kind = CLI_FLAG,
     .offset = AT(tell),
     .help = "end the night of parts: tell what they measured and what is missing; only suspects are measured again"},
    {.name = "digest", .kind = CLI_FLAG, .offset = AT(digest), .help = "print the digest at the end"},
    {.name = "notify",
     .argument = "COMMAND",
     .kind = CLI_TEXT,
     .offset = AT(notify),
     .help = "run this by sh at the end, with the digest as its input and CEILING_SCOUT_NIGHT=quiet, incomplete, "
             "slower or wrong; after 30 s it is ended"},
    {.name = "out",
     .letter = 'o',
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write DIR/<model>[@<options>] for each, and DIR/zoo for all (out)"},
};

typedef struct command_line {
    zoo z; /* first: the options' offsets are its own */
    cli_positionals files;
    arena a;
    status *st;
    status_code code;
} command_line;

static const cli_spec spec = {
    .program = "ceiling-scout zoo",
    .version = version_text,
    .usage = "[ZOO.json] [--list] [--only NAME] [--budget TIME] [--again] [--gpus LIST] [--digest]\n"
             "                         [--night NAME --part N/M | --night NAME --tell] [--notify COMMAND] [-o DIR]",
    .about =
        "Profiles many models, each at several sizes, as profile does one: a folder for each, in which only what has\n"
        "changed is done again. ZOO.json (models/zoo.json) lists them. What several models share is measured once.\n"
        "DIR/zoo receives digest.md, index.html (what changed, and every model over the nights), all.html (all models\n"
        "beside each other) and a log for each. What is out of its nights is measured again before it is told.",
    .after = "examples:\n"
             "  ceiling-scout zoo                          the models of models/zoo.json, into out/\n"
             "  ceiling-scout zoo mine.json --digest       models of yours, and what came of it as Markdown\n"
             "  ceiling-scout zoo mine.json --only bert    one of them\n"
             "  ceiling-scout zoo mine.json --gpus all     beside each other on all GPUs of this machine\n"
             "\n"
             "exit codes: the worst of all models; 1 also where something got slower; 3 also where the list is bad, 4 "
             "also where a zoo runs there already\n",
    .options = rows,
    .option_count = sizeof rows / sizeof rows[0],
    .positional = "ZOO.json",
    .most = 1,
    .positionals = offsetof(command_line, files),
};

static void work(void *context) {
    command_line *c = context;
    c->code = zoo_run(&c->z, c->st);
}

status_code zoo_command(int argc, char **argv, status *st) {
    command_line c = {.z = {.output = "out"}, .st = st};
    c.files.items = &c.z.path;
    c.z.a = &c.a;
    if (cli_parse(&spec, argc, argv, &c, st) != CLI_RUN) return st->code;
    if (!c.z.named != !(c.z.part || c.z.tell))
        return status_set(st, STATUS_USAGE,
                          "--part and --tell are of a night with a name, and only these: say --night "
                          "NAME, the same for all of them");
    if (c.z.part && (c.z.tell || c.z.digest || c.z.notify))
        return status_set(st, STATUS_USAGE,
                          "a part has no digest; give --digest, --notify and --tell to the run that "
                          "ends the night, when all parts have ended");
    if (c.z.named && c.z.gpus)
        return status_set(st, STATUS_USAGE,
                          "a part is measured on one device, that of its machine or task: leave out --gpus");
    if (c.z.named && (c.z.only || c.z.again))
        return status_set(st, STATUS_USAGE,
                          "a night of parts is of all models, measured anew: leave out --only and --again");
    const bool good = arena_within(&c.a, work, &c, st);
    json_decref(c.z.root);
    zoo_run_end();
    if (good) st->code = c.code;
    files_finish_output(st, "whole; give it room");
    return st->code;
}
